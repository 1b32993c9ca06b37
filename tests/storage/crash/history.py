"""What a partition was given, what of it must be there after a crash, and what may be."""

from __future__ import annotations

from kwire.storage.log import Log

from .batches import Batch, aborted, committed, found, latest, next_sequences, ongoing, read_committed


class History:
    """One partition as a list of batches.

    A kill leaves everything; a power cut what was flushed (`safe`), and of the rest as much as chance has it: some
    beginning of it, or of what the log was before a truncation that was not flushed.
    """

    def __init__(self, *, compacted: bool) -> None:
        self.compacted = compacted
        self.batches: list[Batch] = []
        self.start = 0
        self.end = 0
        self.safe = 0
        """What was flushed ends here."""
        self.cleaned = 0
        """Below it a cleaning may have taken records."""
        self.pending: Batch | None = None
        """Was being appended when the process ended."""
        self.cutting: int | None = None
        """To this offset the log was being truncated."""
        self.pending_start = 0
        """The log's start may be this already."""
        self.refused: list[Batch] = []
        """Each was being appended when a process ended, and was not there then; a power cut may bring one back."""
        self.earlier: list[list[Batch]] = []
        """What the log was before each truncation since everything was flushed."""

    def appended(self, batch: Batch) -> None:
        self._take_place_of_refused()
        self.batches.append(batch)
        self.end = batch.last + 1
        self.pending = None

    def _take_place_of_refused(self) -> None:
        """Something else is where they would have been, and is not flushed yet."""
        self.earlier += [[*self.batches, batch] for batch in self.refused]
        self.refused.clear()

    def flushed(self) -> None:
        self.safe = self.end
        self.earlier.clear()

    def begin_truncation(self, offset: int) -> None:
        self.earlier.append(self.batches.copy())
        self.cutting = offset

    def truncated(self) -> None:
        assert self.cutting is not None
        self._cut(self.cutting)
        self.cutting = None

    def _cut(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.last < offset]
        self.end = min(self.end, offset)
        self.safe = min(self.safe, self.end)
        self.start = min(self.start, self.end)

    # After a crash

    def survived(self, log: Log, *, power_cut: bool, ordered: bool) -> None:
        """Checks what a start after a crash has found, and takes it for the truth from now on.

        `ordered`: the file system keeps its changes in order.
        """
        there = found(log)
        expected = [*self.batches, self.pending] if self.pending is not None else self.batches
        candidates = [expected]
        if power_cut:
            candidates += [[*self.batches, batch] for batch in self.refused]
            candidates += self.earlier
        sure = self.safe if power_cut else self.end
        if self.cutting is not None:
            sure = min(sure, self.cutting)
        assert log.log_end_offset >= sure, f"{self.end} were appended, {sure} are sure, {log!r}"
        if not power_cut or ordered or self.safe > self.start:  # else the first segment may have lost its name
            assert log.log_start_offset <= max(self.start, self.pending_start)
        for candidate in candidates:
            if power_cut and self.compacted:
                # A hole that the power cut left cannot be told from one of compaction, except below what was flushed.
                left = {batch.first for batch in there}
                candidate = [batch for batch in candidate if batch.last < self.safe or batch.first in left]
            if self._agrees(log, there, candidate):
                known = candidate
                break
        else:
            may_be_mixed = power_cut and not ordered and self.earlier
            assert may_be_mixed, f"{there} is no beginning of {expected}"
            known = self._mixture(there, candidates)
        self.refused = [batch for batch in self.refused if batch not in there]
        if self.pending in there:
            self._take_place_of_refused()
        elif self.pending is not None:
            self.refused.append(self.pending)
        self.batches = [batch for batch in known if batch.last < log.log_end_offset]
        self.start = log.log_start_offset
        self.end = log.log_end_offset
        self.safe = min(self.safe, self.end)
        self.pending = self.cutting = None
        self.pending_start = self.start

    def _agrees(self, log: Log, there: list[Batch], candidate: list[Batch]) -> bool:
        end = log.log_end_offset
        if not self.compacted:
            inside = [batch for batch in candidate if log.log_start_offset <= batch.last < end]
            return there == inside and (not inside or inside[-1].last == end - 1)
        by_offset = {record[0]: record for batch in candidate for record in batch.records}
        if any(by_offset.get(record[0]) != record for batch in there for record in batch.records):
            return False
        dirty = [batch for batch in candidate if batch.first >= self.cleaned and batch.last < end]
        return [batch for batch in there if batch.first >= self.cleaned] == dirty

    def _mixture(self, there: list[Batch], candidates: list[list[Batch]]) -> list[Batch]:
        """Where nothing is in order, what a truncation took may come back behind what came after it."""
        ever = {batch.first: [] for candidate in candidates for batch in candidate}
        for candidate in candidates:
            for batch in candidate:
                ever[batch.first].append(batch)
        next_offset = there[0].first if there else 0
        for batch in there:
            assert self.compacted or batch.first == next_offset
            assert batch in ever.get(batch.first, ()) or self.compacted
            next_offset = batch.last + 1
        before = there[0].first if there else 0
        return [batch for batch in self.batches if batch.last < before] + there

    # At any time

    def check(self, log: Log) -> None:
        """The log is what the list is, and so is what it knows of producers, transactions and epochs.

        Its high watermark must be at its end.
        """
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        there = found(log)
        assert self._agrees(log, there, self.batches), f"{there} is not {self.batches}"
        self._check_producers(log)
        self._check_transactions(log, there)
        self._check_epochs(log, there)

    def _check_producers(self, log: Log) -> None:
        open_now = ongoing(self.batches)
        for producer, (sequence, last) in next_sequences(self.batches).items():
            entry = log.producer_state.entries.get(producer)
            if entry is None or entry.last_sequence == -1:  # a start may forget whose records are all deleted
                assert last < self.start, f"producer {producer} is forgotten"
                continue
            assert entry.last_sequence + 1 == sequence
            if producer not in open_now:
                assert entry.txn_first_offset == -1
            elif open_now[producer] >= self.start:
                assert entry.txn_first_offset == open_now[producer]

    def _check_transactions(self, log: Log, there: list[Batch]) -> None:
        seen = read_committed(log)
        wanted = [record for record in committed(self.batches, self.end) if record[0] >= self.start]
        if self.compacted:
            assert latest(seen) == latest(wanted)
            return
        whole = {batch.first for batch in there}
        if all(first in whole for first in ongoing(self.batches).values()):
            assert seen == wanted
        begun = self.start if there else self.end
        indexed = {
            (txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
            for segment in log.segments
            for txn in segment.transactions()
        }
        expected = aborted(self.batches)
        if begun == 0:
            assert indexed == set(expected)
        known = {(producer, first, marker) for producer, first, marker, _ in indexed}
        assert {txn[:3] for txn in expected if txn.first >= begun} <= known

    def _check_epochs(self, log: Log, there: list[Batch]) -> None:
        entries = log.epochs.entries()
        for batch in there:
            if batch.first >= self.start:
                assert max(epoch for epoch, start in entries if start <= batch.first) == batch.epoch
