"""Random appends, cleanings, crashes and restarts against lists of what was appended."""

from __future__ import annotations

from typing import NamedTuple

import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kwire.protocol.errors import KafkaError
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records
from kwire.storage.cleaning.work import CleanerSettings
from kwire.storage.log import Log

from .compacted import DELETE_RETENTION_MS, Pair, batches, clean, compacted_place, end, killed_after, put, records

KEYS = st.sampled_from(["a", "b", "c", "d", "e"])
VALUES = st.one_of(st.none(), st.integers(0, 999).map(str), st.just("long" * 12))
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5)
PRODUCERS = st.sampled_from([1, 2, 3])
CODECS = st.sampled_from([Compression.NONE, Compression.GZIP, Compression.ZSTD])


class Appended(NamedTuple):
    key: str
    value: str | None
    timestamp: int
    producer: int
    transaction: int
    """0 where it belongs to none."""


class CompactedLog(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = compacted_place(segment_bytes=500)
        self.log: Log = self.place.open()
        self.appended: dict[int, Appended] = {}
        self.sequences: dict[int, int] = {}
        self.open_transactions: dict[int, int] = {}
        self.outcomes: dict[int, bool] = {0: True}
        self.checkpoint: int | None = None
        self.end_offset = 0
        self.transactions = 0

    @initialize(index_interval=st.sampled_from([1, 100]), map_bytes=st.sampled_from([24 * 10, 1 << 20]))
    def configure(self, index_interval: int, map_bytes: int) -> None:
        self.place = compacted_place(segment_bytes=500, index_interval_bytes=index_interval)
        self.log = self.place.open()
        self.settings = CleanerSettings(map_bytes, 0.9, 100, piece_bytes=300)

    # What producers do

    def append(self, pairs: list[Pair], producer: int = 0, transaction: int = 0, **options: object) -> None:
        self.place.clock.advance(1)
        first = trio.run(lambda: put(self.log, *pairs, **options))
        now = self.place.clock.wall_ms()
        for index, (key, value) in enumerate(pairs):
            self.appended[first + index] = Appended(key, value, now + index, producer, transaction)
        self.end_offset = first + len(pairs)

    @rule(pairs=PAIRS, codec=CODECS)
    def produce(self, pairs: list[Pair], codec: Compression) -> None:
        self.append(pairs, compression=codec)

    @rule(pairs=PAIRS, producer=PRODUCERS, codec=CODECS)
    def produce_in_transaction(self, pairs: list[Pair], producer: int, codec: Compression) -> None:
        """The next sequence is taken whatever was cleaned, and whatever was restarted."""
        if producer not in self.open_transactions:
            self.transactions += 1
        transaction = self.open_transactions.setdefault(producer, self.transactions)
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + len(pairs)
        self.append(
            pairs,
            producer,
            transaction,
            compression=codec,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )

    @rule(producer=PRODUCERS, commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        trio.run(lambda: end(self.log, producer, commit=commit))
        self.outcomes[self.open_transactions.pop(producer, -1)] = commit
        self.end_offset += 1

    @rule(ms=st.sampled_from([1, DELETE_RETENTION_MS]))
    def time_passes(self, ms: int) -> None:
        self.place.clock.advance(ms)

    # What happens to the log

    def open_again(self, *, clean: bool) -> None:
        self.log = self.place.open(clean=clean, high_watermark=self.log.log_end_offset)

    @rule()
    def restart(self) -> None:
        trio.run(self.log.close)
        self.open_again(clean=True)

    @rule()
    def kill(self) -> None:
        self.open_again(clean=False)

    @rule()
    def clean(self) -> None:
        self.checkpoint = trio.run(lambda: clean(self.log, self.checkpoint, settings=self.settings)).end_offset

    @rule(operations=st.integers(0, 60))
    def kill_while_cleaning(self, operations: int) -> None:
        self.log.roll()
        self.place.memory.fault = killed_after(operations)
        try:
            trio.run(lambda: clean(self.log, self.checkpoint, roll=False, settings=self.settings))
        except KafkaError:
            pass
        finally:
            self.place.memory.fault = None
        self.open_again(clean=False)

    @rule(at=st.integers(0, 20))
    def append_while_cleaning(self, at: int) -> None:
        """Between pieces of a cleaning others go on."""
        left = at

        async def throttle(size: int) -> None:
            nonlocal left
            left -= 1
            if not left:
                first = await put(self.log, ("a", "meanwhile"))
                self.appended[first] = Appended("a", "meanwhile", self.place.clock.wall_ms(), 0, 0)
                self.end_offset = first + 1

        self.checkpoint = trio.run(
            lambda: clean(self.log, self.checkpoint, settings=self.settings, throttle=throttle)
        ).end_offset

    # What always holds

    @invariant()
    def what_is_there_was_appended_there(self) -> None:
        for header, batch in batches(self.log):
            if header.control:
                continue
            for record in iter_records(batch):
                appended = self.appended[record.offset]
                assert record.key == appended.key.encode()
                assert record.value == (None if appended.value is None else appended.value.encode())
                assert record.timestamp == appended.timestamp
                assert record.headers == [("h", b"v")]
                assert header.base_offset <= record.offset <= header.last_offset

    @invariant()
    def the_latest_of_each_key_is_read(self) -> None:
        """Of what is committed and stable; a tombstone may be there or not."""
        stable = self.log.last_stable_offset
        expected: dict[str, tuple[int, str | None]] = {}
        for offset, (key, value, _, _, transaction) in sorted(self.appended.items()):
            if offset < stable and self.outcomes.get(transaction, False):
                expected[key] = offset, value
        found: dict[str, tuple[int, str | None]] = {}
        for offset, key, value in self.read_committed():
            found[key] = offset, value
        for key in expected.keys() | found.keys():
            if expected[key][1] is not None or key in found:
                assert found[key] == expected[key]

    def read_committed(self) -> list[tuple[int, str, str | None]]:
        """As a consumer reads: without records of those transactions that the broker says are aborted."""
        log, seen = self.log, []
        offset, stable = log.log_start_offset, log.last_stable_offset
        while offset < stable:
            found = log.read(offset, 300, upto=stable, min_one=True)
            if found.slice is None:
                break
            aborted = sorted((txn.first_offset, txn.producer_id) for txn in log.aborted(offset, found))
            inside: set[int] = set()
            for header, batch in iter_batches(found.slice.read()):
                while aborted and aborted[0][0] <= header.last_offset:
                    inside.add(aborted.pop(0)[1])
                if header.control:
                    inside.discard(header.producer_id)
                elif not (header.transactional and header.producer_id in inside):
                    seen += [
                        (record.offset, (record.key or b"").decode(), record.value and record.value.decode())
                        for record in iter_records(batch)
                        if record.offset >= offset
                    ]
                offset = header.next_offset
        return seen

    @invariant()
    def the_last_sequence_of_each_producer_is_known(self) -> None:
        for producer, sequence in self.sequences.items():
            assert self.log.producer_state.entries[producer].last_sequence == sequence - 1

    @invariant()
    def from_any_offset_the_same_is_read(self) -> None:
        everything = records(self.log)
        for offset in range(self.log.log_start_offset, self.log.log_end_offset, 3):
            assert records(self.log, offset) == [seen for seen in everything if seen.offset >= offset]

    @invariant()
    def offsets_ascend_and_reach_the_end(self) -> None:
        next_offset = self.log.log_start_offset
        for header, _ in batches(self.log):
            assert header.base_offset >= next_offset
            next_offset = header.next_offset
        assert next_offset <= self.log.log_end_offset == self.end_offset


CompactedLog.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestCompactedLog = CompactedLog.TestCase
