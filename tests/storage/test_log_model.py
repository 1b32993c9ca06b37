"""A log against a list: whatever is done to it, killed and restarted amid it, it holds what a list would hold."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kwire.protocol.errors import KafkaError
from kwire.storage import layout

from .support import T0, DirectExecutor, Place, append, batch, idempotent, placed, read_all, run

values = st.lists(st.text("ab", max_size=60), min_size=1, max_size=4)


class LogMachine(RuleBasedStateMachine):
    @initialize(
        segment_bytes=st.sampled_from([400, 1000, 1 << 20]),
        interval=st.sampled_from([0, 100, 4096]),
        flush_messages=st.sampled_from([1, 5, 1 << 60]),
        policy=st.sampled_from([{"delete"}, {"compact", "delete"}]),
    )
    def begin(self, segment_bytes, interval, flush_messages, policy):
        self.place = Place(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            flush_messages=flush_messages,
            cleanup_policy=frozenset(policy),
            retention_ms=1000,
        )
        self.place.executor = DirectExecutor()
        self.log = self.place.open()
        self.batches = []  # of (first offset, values, epoch), oldest first
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.sequence = 0
        self.last_sequenced = -1

    def records(self):
        return [
            (first + i, value)
            for first, values, _ in self.batches
            for i, value in enumerate(values)
            if first + i >= self.start
        ]

    def known_sequence(self):
        return max((entry.last_sequence for entry in self.log.producer_state.entries.values()), default=-1) + 1

    def reopen(self, **options):
        self.log = self.place.open(log_start=self.start, high_watermark=self.log.high_watermark, **options)

    def reopen_after_crash(self):
        self.reopen(clean=False, recovery_point=self.log.recovery_point)
        self.take_sequence_over()

    def take_sequence_over(self):
        """A producer whose records lie before the log's start may be forgotten at a start, or found again."""
        known = self.known_sequence()
        assert known == self.sequence or self.last_sequenced < self.start
        self.sequence = known

    # What a leader and a follower do

    @rule(values=values)
    def append(self, values):
        assert run(append, self.log, *values, epoch=self.epoch, timestamp=T0 + self.end) == self.end
        self.batches.append((self.end, values, self.epoch))
        self.end += len(values)

    @rule(values=values, again=st.booleans())
    def append_idempotently(self, values, again):
        data = idempotent(values, self.sequence, timestamp=T0 + self.end)
        info = run(self.log.append_as_leader, data, self.epoch)
        assert (info.first_offset, info.duplicate) == (self.end, False)
        if again:
            repeated = run(self.log.append_as_leader, data, self.epoch)
            assert (repeated.first_offset, repeated.duplicate) == (self.end, True)
        self.batches.append((self.end, values, self.epoch))
        self.end += len(values)
        self.sequence += len(values)
        self.last_sequenced = self.end - 1

    @rule(blobs=st.lists(st.tuples(st.integers(0, 2), values), min_size=1, max_size=4))
    def replicate(self, blobs):
        data = b""
        for gap, values in blobs:
            first = self.end + gap * self.place.config.compacted  # only compaction leaves gaps
            data += placed(first, values, self.epoch, timestamp=T0 + first)
            self.batches.append((first, values, self.epoch))
            self.end = first + len(values)
        assert run(self.log.append_as_follower, data).last_offset == self.end - 1

    @rule()
    def lead_anew(self):
        self.epoch += 1

    @rule(share=st.floats(0, 1))
    def commit(self, share):
        self.log.advance_high_watermark(int(self.start + (self.end - self.start) * share))

    @rule(share=st.floats(0, 1))
    def delete_records(self, share):
        offset = int(self.start + (self.log.high_watermark - self.start) * share)
        self.log.advance_log_start(offset)
        self.start = max(self.start, offset)

    @rule(share=st.floats(0, 1))
    def truncate(self, share):
        ends = [self.start] + [first + len(values) for first, values, _ in self.batches]
        offset = ends[int((len(ends) - 1) * share)]
        self.log.truncate_to(offset)
        self.batches = [entry for entry in self.batches if entry[0] + len(entry[1]) <= offset]
        self.end = min(self.end, offset)
        self.start = min(self.start, self.end)
        self.sequence = self.known_sequence()
        self.last_sequenced = min(self.last_sequenced, self.end - 1) if self.sequence else -1

    @rule(age=st.integers(0, 2000))
    def retain(self, age):
        run(self.log.delete_old_segments, T0 + age)
        assert self.start <= self.log.log_start_offset <= self.log.high_watermark or (
            self.log.log_start_offset == self.start
        )
        self.start = self.log.log_start_offset

    @rule()
    def roll(self):
        self.log.roll()

    @rule()
    def flush(self):
        run(self.log.flush)
        assert self.log.recovery_point == self.end

    @rule(ms=st.sampled_from([0, 60_000]))
    def do_chores(self, ms):
        self.place.clock.advance(ms)
        run(self.place.services.chores.finish_due)

    # What happens to a broker

    @rule()
    def restart(self):
        self.log.log_dir.write_checkpoint(layout.RECOVERY_POINTS, {("t", 0): self.log.recovery_point})
        run(self.log.close)
        self.reopen(clean=True)
        assert self.log.recovery_point == self.end
        self.take_sequence_over()

    @rule(tail=st.sampled_from([b"", bytes(200), b"\x00\x01torn", "half a batch"]), lose_indexes=st.booleans())
    def kill(self, tail, lose_indexes):
        if tail == "half a batch":
            tail = (self.end.to_bytes(8, "big") + batch(["half"])[8:])[:-3]
        active = self.log.segments.active
        active.file.pwrite([tail], active.size)
        names = self.place.names()
        for name in names if lose_indexes else []:
            if name.endswith((".index", ".timeindex")) and int(name[:20]) >= active.base_offset:
                self.place.memory.remove(f"/data/t-0/{name}")
        self.reopen_after_crash()

    @rule()
    def fill_the_disk(self):
        self.place.memory.fault = lambda operation, path, size: size // 2 if operation == "write" else None
        try:
            run(append, self.log, "lost", epoch=self.epoch)
        except KafkaError:
            pass
        else:
            raise AssertionError("the disk was full")
        self.place.memory.fault = None
        self.reopen_after_crash()

    @rule()
    def lose_power(self):
        if not self.log.unflushed or self.place.config.compacted:  # a hole would pass for one of compaction
            return
        self.place.memory.lose_power(lambda synced, size: synced)
        point = self.log.recovery_point
        self.reopen(clean=False, recovery_point=point)
        end = self.log.log_end_offset
        assert end >= min(point, self.end)
        self.batches = [entry for entry in self.batches if entry[0] + len(entry[1]) <= end]
        self.end = end
        self.start = self.log.log_start_offset
        self.sequence = self.known_sequence()
        self.last_sequenced = min(self.last_sequenced, self.end - 1) if self.sequence else -1

    # What must hold

    @invariant()
    def offsets_agree(self):
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
        assert log.recovery_point <= log.log_end_offset
        assert log.size == sum(segment.size for segment in log.segments)

    @invariant()
    def records_agree(self):
        assert read_all(self.log) == self.records()

    @precondition(lambda self: self.end > self.start)
    @rule(share=st.floats(0, 1), max_bytes=st.integers(1, 400))
    def read_somewhere(self, share, max_bytes):
        offset = min(self.end - 1, int(self.start + (self.end - self.start) * share))
        expected = [record for record in self.records() if record[0] >= offset]
        assert read_all(self.log, offset) == expected
        upto = (offset + self.end) // 2
        seen = read_all(self.log, offset, upto)
        assert seen == expected[: len(seen)]
        assert all(record[0] < upto for record in seen)
        found = run(self.log.fetch, offset, max_bytes, min_one=True)
        assert (found.slice is None) == (not expected)

    @precondition(lambda self: self.end > self.start)
    @rule(share=st.floats(0, 1))
    def look_up_a_time(self, share):
        timestamp = T0 + int(self.start + (self.end - self.start) * share)
        expected = [
            (T0 + first + i, first + i, epoch)
            for first, values, epoch in self.batches
            for i in range(len(values))
            if T0 + first + i >= timestamp and first + i >= self.start
        ]
        found = run(self.log.offset_for_timestamp, timestamp)
        assert found == (expected[0] if expected else None)

    @rule()
    def ask_for_epochs(self):
        for first, _, epoch in self.batches:
            if first >= self.start:
                assert max(known for known, start in self.log.epochs.entries() if start <= first) == epoch


LogMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLogModel = LogMachine.TestCase
