"""Appends, rolls, cleanings, deletions, truncations, flushes, restarts; kills and power cuts at any system call."""

from __future__ import annotations

import errno
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kwire.config.topic import LogConfig
from kwire.ports.simulated_disk import Order
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.record import Record
from kwire.storage.validated import Origin

from ..support import T0, TOPIC_ID
from .batches import Batch, next_sequences, ongoing
from .broker import Broker
from .history import History

KEPT, KEYED = "kept", "keyed"
TOPICS = st.sampled_from([KEPT, KEYED])
KEYS = st.sampled_from("abc")
SIZES = st.lists(st.tuples(KEYS, st.sampled_from([0, 20, 60])), min_size=1, max_size=3)
IDEMPOTENT, TRANSACTIONAL, OTHER_TRANSACTIONAL = 1, 2, 3
PRODUCERS = st.sampled_from([IDEMPOTENT, TRANSACTIONAL, OTHER_TRANSACTIONAL])
UPKEEP = [
    "write_recovery_points",
    "write_log_start_offsets",
    "write_high_watermarks",
    "flush_due",
    "cut_reserves",
]
HOUR = 3_600_000

CALLS = st.integers(0, 40)
KILLS = st.one_of(st.none(), st.none(), st.none(), CALLS)
"""At which change of the disk an action is cut off, if at all."""
ENDS = st.tuples(st.booleans(), st.lists(st.tuples(CALLS, st.booleans()), max_size=2).map(tuple), st.booleans())
"""How the process ends (with the power?), how the starts after it, and whether it ends once more right after them."""
SHARES = st.sampled_from([0.0, 0.3, 1.0])
SMALL_RESERVES = {
    "FIRST_AT": 300,
    "STEP": 256,
    "LEFT": 64,
    "MOST": 320,
    "PIECE": 96,
    "_LONGEST": 384,
    "FLUSHED_OFTEN": 0,
}


class CrashMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.undone = ExitStack()

    def teardown(self):
        self.undone.close()

    @initialize(
        order=st.sampled_from(Order),
        seed=st.integers(0, 1 << 30),
        segment_bytes=st.sampled_from([400, 1000, 1 << 20]),
        interval=st.sampled_from([0, 100, 4096]),
        flush_messages=st.sampled_from([1, 4, 1 << 60]),
        preallocate=st.booleans(),
        reserves=st.booleans(),
        delay=st.sampled_from([0, HOUR]),
    )
    def begin(self, order, seed, segment_bytes, interval, flush_messages, preallocate, reserves, delay):
        common = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            flush_messages=flush_messages,
            preallocate=preallocate,
            file_delete_delay_ms=delay,
            min_cleanable_dirty_ratio=0.0,
            retention_ms=10_000,
        )
        keyed = replace(common, cleanup_policy=frozenset({"compact"}))
        if reserves:
            self.undone.enter_context(patch.multiple("kwire.storage.reserve", **SMALL_RESERVES))
        self.flush_messages = flush_messages
        self.broker = Broker(order, seed, {KEPT: common, KEYED: keyed})
        self.histories = {KEPT: History(compacted=False), KEYED: History(compacted=True)}
        self.epoch = 0
        self.written = 0
        self.broker.start()
        for topic in (KEPT, KEYED):
            assert self.broker.do(lambda topic=topic: self.create(topic))

    async def create(self, topic):
        await self.broker.manager.get_or_create(topic, 0, TOPIC_ID, self.broker.topics[topic])

    # Ends and beginnings

    def act(self, work, kill, share, end):
        """Whether the work came to its end; else the process has ended in it, and another one has begun."""
        if self.broker.do(work, kill=kill, share=share):
            return True
        self.crash(end)
        return False

    @rule(end=ENDS)
    def crash(self, end):
        power_cut, kills, again = end
        broker = self.broker
        broker.start(power_cut=power_cut, kills=kills)
        for topic, history in self.histories.items():
            if (topic, 0) not in broker.manager.logs:
                assert broker.power_cut
                assert history.safe == 0
                assert broker.do(lambda topic=topic: self.create(topic))
            log = broker.log(topic)
            log.set_high_watermark(log.log_end_offset)
            history.survived(log, power_cut=broker.power_cut, ordered=broker.disk.order is Order.JOURNAL)
        self.check()
        if again:
            broker.start()
            self.check()

    def check(self):
        for topic, history in self.histories.items():
            log = self.broker.log(topic)
            log.set_high_watermark(log.log_end_offset)
            history.check(log)
        self.epoch += 1  # as after every unclean start

    @rule(kill=KILLS, share=SHARES, end=ENDS)
    def restart(self, kill, share, end):
        if self.act(self.broker.stop, kill, share, end):
            self.broker.start()
            for topic, history in self.histories.items():
                history.start = self.broker.log(topic).log_start_offset
                history.flushed()
                history.refused.clear()
            self.check()

    # What producers do

    def put(self, topic, batch, data, origin, kill, share, end):
        history, log = self.histories[topic], self.broker.log(topic)
        history.pending = batch

        async def append():
            info = await log.append_as_leader(data, self.epoch, origin=origin)
            assert (info.first_offset, info.last_offset, info.duplicate) == (batch.first, batch.last, False)

        if self.act(append, kill, share, end):
            history.appended(batch)
            if self.flush_messages == 1:
                history.flushed()

    def records(self, first, sizes):
        self.written += 1
        pairs = [(key, f"{self.written}{'x' * size}" if size else None) for key, size in sizes]
        self.broker.clock.advance(1)
        now = self.broker.clock.wall_ms()
        built = [
            Record(i, now, key.encode(), None if value is None else value.encode(), [])
            for i, (key, value) in enumerate(pairs)
        ]
        return tuple((first + i, key, value) for i, (key, value) in enumerate(pairs)), built

    @rule(topic=TOPICS, sizes=SIZES, kill=KILLS, share=SHARES, end=ENDS, replicated=st.booleans())
    def append(self, topic, sizes, kill, share, end, replicated):
        first = self.histories[topic].end
        records, built = self.records(first, sizes)
        batch = Batch(first, first + len(records) - 1, self.epoch, records)
        self.put(topic, batch, build_batch(built), Origin.CLIENT, kill, share, end)
        self.advance(topic, replicated)

    def advance(self, topic, replicated):
        if replicated:
            log = self.broker.log(topic)
            log.set_high_watermark(log.log_end_offset)

    def produced(self, batch, built):
        return build_batch(
            built,
            producer_id=batch.producer,
            producer_epoch=0,
            base_sequence=batch.sequence,
            transactional=batch.transactional,
        )

    @rule(
        topic=TOPICS,
        sizes=SIZES,
        call=st.integers(0, 8),
        error=st.sampled_from([errno.EIO, errno.ENOSPC]),
        share=SHARES,
        end=ENDS,
    )
    def append_on_a_failing_disk(self, topic, sizes, call, error, share, end):
        """What is refused may be there after the restart, or not; what failed to reach the disk is not made good."""
        history, log = self.histories[topic], self.broker.log(topic)
        records, built = self.records(history.end, sizes)
        batch = Batch(history.end, history.end + len(records) - 1, self.epoch, records)
        history.pending = batch

        async def append():
            await log.append_as_leader(build_batch(built), self.epoch)
            history.appended(batch)
            if self.flush_messages == 1:
                history.flushed()
            await log.flush()
            history.flushed()

        offline, failed = self.broker.fails(append, call=call, error=error, share=share)
        if offline:
            # After a failed sync the page cache holds what the disk has not, and no later sync makes that good.
            self.crash((end[0] or failed == "sync", *end[1:]))

    @rule(topic=TOPICS, sizes=SIZES, producer=PRODUCERS, kill=KILLS, share=SHARES, end=ENDS)
    def append_with_sequence(self, topic, sizes, producer, kill, share, end):
        history = self.histories[topic]
        sequence, _ = next_sequences(history.batches).get(producer, (0, -1))
        entry = self.broker.log(topic).producer_state.entries.get(producer)
        if sequence and entry is not None and entry.last_sequence == -1:
            return  # all its records were deleted, a marker is left: in this epoch nothing can follow, as in Kafka
        records, built = self.records(history.end, sizes)
        last = history.end + len(records) - 1
        transactional = producer != IDEMPOTENT
        batch = Batch(history.end, last, self.epoch, records, producer, sequence, transactional)
        self.put(topic, batch, self.produced(batch, built), Origin.CLIENT, kill, share, end)

    @rule(topic=TOPICS, producer=PRODUCERS)
    def retry(self, topic, producer):
        """What the producer sent last, it sends again: it is told where that is."""
        history, log = self.histories[topic], self.broker.log(topic)
        sent = [batch for batch in history.batches if batch.producer == producer and batch.commit is None]
        if not sent or sent[-1].last < history.start:
            return
        batch = sent[-1]
        built = [Record(i, T0, b"k", b"", []) for i in range(batch.last - batch.first + 1)]

        async def append():
            info = await log.append_as_leader(self.produced(batch, built), self.epoch)
            assert (info.last_offset, info.duplicate) == (batch.last, True)

        assert self.broker.do(append)
        assert log.log_end_offset == history.end

    @rule(topic=TOPICS, commit=st.booleans(), kill=KILLS, share=SHARES, end=ENDS)
    def end_transaction(self, topic, commit, kill, share, end):
        history = self.histories[topic]
        begun = ongoing(history.batches)
        for producer in sorted(begun)[:1]:
            at = history.end
            batch = Batch(at, at, self.epoch, (), producer, -1, True, commit)
            data = build_end_txn_marker(
                producer, 0, commit=commit, coordinator_epoch=1, timestamp=self.broker.clock.wall_ms()
            )
            self.put(topic, batch, data, Origin.COORDINATOR, kill, share, end)

    @rule()
    def lead_anew(self):
        self.epoch += 1

    # What the broker does

    @rule(topic=TOPICS, kill=KILLS, end=ENDS)
    def roll(self, topic, kill, end):
        async def roll():
            self.broker.log(topic).roll()

        self.act(roll, kill, 0.0, end)

    @rule(topic=TOPICS, kill=KILLS, end=ENDS)
    def flush(self, topic, kill, end):
        if self.act(self.broker.log(topic).flush, kill, 0.0, end):
            self.histories[topic].flushed()

    @rule(share=st.floats(0, 1), kill=KILLS, end=ENDS)
    def delete_records(self, share, kill, end):
        history, log = self.histories[KEPT], self.broker.log(KEPT)
        offset = int(history.start + (log.high_watermark - history.start) * share)
        log.advance_log_start(offset)
        history.pending_start = max(history.start, offset)
        if self.act(self.broker.upkeep.write_log_start_offsets, kill, 0.0, end):
            history.start = history.pending_start

    @rule(later=st.sampled_from([0, 20_000]), kill=KILLS, end=ENDS)
    def retain(self, later, kill, end):
        self.broker.clock.advance(later)
        history, log = self.histories[KEPT], self.broker.log(KEPT)
        history.pending_start = log.high_watermark
        if self.act(self.broker.upkeep.delete_old_segments, kill, 0.0, end):
            assert log.log_start_offset <= log.high_watermark
            history.start = history.pending_start = log.log_start_offset

    @rule(topic=TOPICS, share=st.floats(0, 1), kill=KILLS, end=ENDS)
    def truncate(self, topic, share, kill, end):
        """A follower's: never below the high watermark."""
        history, log = self.histories[topic], self.broker.log(topic)
        ends = [log.high_watermark, *(b.last + 1 for b in history.batches if b.last >= log.high_watermark)]
        offset = ends[int((len(ends) - 1) * share)]
        history.begin_truncation(offset)

        async def truncate():
            log.truncate_to(offset)

        if self.act(truncate, kill, 0.0, end):
            history.truncated()
            self.epoch += 1

    @rule(kill=KILLS, share=SHARES, end=ENDS)
    def clean(self, kill, share, end):
        history, log = self.histories[KEYED], self.broker.log(KEYED)
        history.cleaned = max(history.cleaned, log.segments.active.base_offset)

        async def clean():
            dirtiest = await self.broker.cleaner.dirtiest()
            if dirtiest is not None:
                await self.broker.cleaner.clean(dirtiest)

        self.act(clean, kill, share, end)

    @rule(
        name=st.sampled_from(UPKEEP),
        kill=KILLS,
        share=SHARES,
        end=ENDS,
    )
    def keep_up(self, name, kill, share, end):
        self.act(getattr(self.broker.upkeep, name), kill, share, end)

    @rule(kill=KILLS, later=st.sampled_from([0, HOUR]), end=ENDS)
    def do_chores(self, kill, later, end):
        self.broker.clock.advance(later)
        self.act(self.broker.manager.services.chores.finish_due, kill, 0.0, end)


CrashMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestCrashModel = CrashMachine.TestCase
