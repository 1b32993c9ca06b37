"""At which offset each leader epoch began: how a follower finds where two histories part (KIP-101, KIP-279).

    epoch  start offset
      0        0          offsets 0..41 were written in epoch 0
      3       42          from 42 on in epoch 3; epochs 1 and 2 wrote nothing

Both columns ascend strictly. The entries live in memory. They reach `leader-epoch-checkpoint` when the log is flushed
or closed: whatever was appended after the last flush carries its epoch in its batch headers, and recovery reads those
again. So assigning an epoch costs the event loop no disk access.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple

Entries = tuple[tuple[int, int], ...]
"""(epoch, start offset), ascending."""

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEnd(NamedTuple):
    """Where an epoch ended: the offset after its last one. Both -1 where that is unknown."""

    epoch: int
    end_offset: int


@lru_cache(maxsize=256)
def _shared(entries: Entries) -> Entries:
    """The same object for equal entries: those of thousands of partitions that saw one leader are alike."""
    return entries


_EPOCH = itemgetter(0)
_START = itemgetter(1)


class LeaderEpochCache:
    """The leader epochs of one partition."""

    __slots__ = ("_entries", "_written", "dirty")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: Entries = ()
        self._written: Entries = ()
        self.dirty = False
        """True while the entries differ from those last written to disk."""
        for epoch, start in entries:
            self.assign(epoch, start)
        self.were_written()

    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), ascending."""
        return list(self._entries)

    @property
    def written(self) -> Sequence[tuple[int, int]]:
        """What the file says."""
        return self._written

    def were_written(self) -> None:
        """The file has these entries now."""
        self._written = self._entries
        self.dirty = False

    def file_has(self, entries: Iterable[tuple[int, int]]) -> None:
        """From now on there is another file, which has these."""
        self._written = tuple(entries)
        self.dirty = self._written != self._entries

    @property
    def latest_epoch(self) -> int | None:
        return self._entries[-1][0] if self._entries else None

    @property
    def earliest(self) -> tuple[int, int] | None:
        """The first entry: (epoch, start offset)."""
        return self._entries[0] if self._entries else None

    def epoch_at(self, offset: int) -> int | None:
        """The epoch in which `offset` was written, or will be; None before the first known one, or without any."""
        found = bisect_right(self._entries, offset, key=_START)
        return self._entries[found - 1][0] if found else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Says that `epoch` begins at `start_offset`; what contradicts that is forgotten.

        Does nothing where `epoch` is the latest and began at or before `start_offset`.
        """
        entries = self._entries
        if entries:
            latest, began = entries[-1]
            if latest == epoch and began <= start_offset:
                return
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset}")
        kept = len(entries)
        while kept and (entries[kept - 1][0] >= epoch or entries[kept - 1][1] >= start_offset):
            kept -= 1
        self._change((*entries[:kept], (epoch, start_offset)))

    def begin_with(self, earlier: Iterable[tuple[int, int]]) -> None:
        """Puts what came before in front, as far as it fits: lower epochs at lower offsets, and where they began."""
        entries = self._entries
        fitting = tuple(
            (epoch, start)
            for epoch, start in earlier
            if not entries or (epoch <= entries[0][0] and start < entries[0][1])
        )
        if fitting:
            same = bool(entries) and fitting[-1][0] == entries[0][0]
            self._change((*fitting, *entries[1 if same else 0 :]))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The end of the largest epoch not above `epoch`: where the next one begins, or the log's end for the latest.

        An epoch before the first known one ends where that begins, so that a follower resumes at what is left of the
        log. (-1, -1) for an epoch above the latest, an undefined one, or where no epoch is known.
        """
        entries = self._entries
        if epoch == UNDEFINED_EPOCH or not entries or epoch > entries[-1][0]:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == entries[-1][0]:
            return EpochEnd(epoch, log_end_offset)
        higher = bisect_right(entries, epoch, key=_EPOCH)
        found = entries[higher - 1][0] if higher else epoch
        return EpochEnd(found, entries[higher][1])

    def truncate_from_end(self, end_offset: int) -> None:
        """Forgets the epochs that begin at or after `end_offset`."""
        entries = self._entries
        kept = bisect_left(entries, end_offset, key=_START)
        if kept < len(entries):
            self._change(entries[:kept])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forgets the epochs that ended at or before `start_offset`; the one it lies in begins there from now on."""
        entries = self._entries
        first = bisect_right(entries, start_offset, key=_START) - 1
        if first > 0 or (first == 0 and entries[0][1] < start_offset):
            self._change(((entries[first][0], start_offset), *entries[first + 1 :]))

    def clear(self) -> None:
        if self._entries:
            self._change(())

    def _change(self, entries: Entries) -> None:
        self._entries = _shared(entries) if len(entries) == 1 else entries
        self.dirty = True
