"""What read_committed consumers see of a log, held to a list: no record of an open or aborted transaction, ever."""

from __future__ import annotations

from typing import NamedTuple

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kwire.protocol.records.control import read_end_txn_marker
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records
from kwire.storage.log import Log

from .support import DirectExecutor, Place, append, end_transaction, idempotent, run

VALUES = st.lists(st.text("ab", max_size=30), min_size=1, max_size=3)
PRODUCERS = st.integers(1, 3)


class Transaction:
    """From the first offset to that of its marker, both None as long as there is none."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.ended: int | None = None
        self.committed = False


class Written(NamedTuple):
    offset: int
    value: str
    transaction: Transaction | None


class Isolation(RuleBasedStateMachine):
    @initialize(segment_bytes=st.sampled_from([300, 1000, 1 << 20]), interval=st.sampled_from([0, 100, 4096]))
    def begin(self, segment_bytes: int, interval: int) -> None:
        self.place = Place(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.place.executor = DirectExecutor()
        self.log = self.place.open()
        self.written: list[Written] = []
        self.transactions: list[Transaction] = []
        self.open: dict[int, Transaction] = {}
        self.sequences: dict[int, int] = {}
        self.ends: list[int] = []
        """The offset behind each batch."""

    @rule(values=VALUES)
    def append(self, values: list[str]) -> None:
        self.note(run(append, self.log, *values), values, None)

    @rule(producer=PRODUCERS, values=VALUES)
    def append_in_a_transaction(self, producer: int, values: list[str]) -> None:
        sequence = self.sequences.get(producer, 0)
        data = idempotent(values, sequence, producer, transactional=True)
        first = run(self.log.append_as_leader, data, 0).first_offset
        self.sequences[producer] = sequence + len(values)
        if producer not in self.open:
            self.open[producer] = Transaction(first)
            self.transactions.append(self.open[producer])
        self.note(first, values, self.open[producer])

    def note(self, first: int, values: list[str], transaction: Transaction | None) -> None:
        self.written += [Written(first + number, value, transaction) for number, value in enumerate(values)]
        self.ends.append(first + len(values))

    @rule(producer=PRODUCERS, commit=st.booleans())
    def end(self, producer: int, commit: bool) -> None:
        """A marker also comes where the transaction has no record in this log."""
        offset = self.log.log_end_offset
        run(end_transaction, self.log, producer, commit=commit)
        self.ends.append(offset + 1)
        transaction = self.open.pop(producer, None)
        if transaction is not None:
            transaction.ended, transaction.committed = offset, commit

    @rule(data=st.data())
    def replicate(self, data: st.DataObject) -> None:
        """Whole batches, as followers fetch them."""
        self.log.advance_high_watermark(data.draw(st.sampled_from([0, *self.ends])))

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(killed=st.booleans())
    def restart(self, killed: bool) -> None:
        """All is replicated by then, as it always is where there is one broker."""
        end = self.log.log_end_offset
        point = self.log.recovery_point if killed else end
        if not killed:
            run(self.log.close)
        self.log = self.place.open(clean=not killed, recovery_point=point, high_watermark=end)
        self.log.advance_high_watermark(end)

    @invariant()
    def the_last_stable_offset_passes_no_open_transaction(self) -> None:
        watermark = self.log.high_watermark
        unstable = [one.first for one in self.transactions if one.ended is None or one.ended >= watermark]
        assert self.log.last_stable_offset == min([watermark, *unstable])

    @invariant()
    def what_is_committed_is_seen_and_nothing_else(self) -> None:
        stable = self.log.last_stable_offset
        visible = [
            (one.offset, one.value)
            for one in self.written
            if one.offset < stable and (one.transaction is None or one.transaction.committed)
        ]
        for start in {0, stable // 3, stable // 2, max(stable - 2, 0)}:
            for max_bytes in (1, 250, 1 << 20):
                assert read_committed(self.log, start, max_bytes) == [one for one in visible if one[0] >= start]


def read_committed(log: Log, offset: int, max_bytes: int) -> list[tuple[int, str]]:
    """(offset, value), by the rule that all consumers go by, from fetches of `max_bytes`, at least a batch each."""
    stable = log.last_stable_offset
    seen = []
    while offset < stable:
        found = run(log.fetch, offset, max_bytes, upto=stable, min_one=True)
        assert found.slice is not None
        waiting = sorted(log.aborted(offset, found), key=lambda one: one.first_offset, reverse=True)
        aborting: set[int] = set()
        for header, data in iter_batches(found.slice.read()):
            while waiting and waiting[-1].first_offset < header.next_offset:
                aborting.add(waiting.pop().producer_id)
            if header.control:
                aborting.discard(header.producer_id)
                assert read_end_txn_marker(data) is not None
            elif not (header.transactional and header.producer_id in aborting):
                seen += [(r.offset, (r.value or b"").decode()) for r in iter_records(data) if r.offset >= offset]
            offset = max(offset, header.next_offset)
    return seen


Isolation.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestIsolation = Isolation.TestCase
