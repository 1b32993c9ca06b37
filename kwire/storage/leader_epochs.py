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
from collections.abc import Iterable
from typing import NamedTuple

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEnd(NamedTuple):
    """Where an epoch ended: the offset after its last one. Both -1 where that is unknown."""

    epoch: int
    end_offset: int


class LeaderEpochCache:
    """The leader epochs of one partition."""

    __slots__ = ("_epochs", "_starts", "dirty", "written")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for epoch, start in entries:
            self.assign(epoch, start)
        self.dirty = False
        """True while the entries differ from those last written to disk; whoever writes them resets it."""
        self.written = self.entries()
        """What the file says; whoever writes it sets it."""

    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), ascending."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def latest_epoch(self) -> int | None:
        return self._epochs[-1] if self._epochs else None

    @property
    def earliest(self) -> tuple[int, int] | None:
        """The first entry: (epoch, start offset)."""
        return (self._epochs[0], self._starts[0]) if self._epochs else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Says that `epoch` begins at `start_offset`; what contradicts that is forgotten.

        Does nothing where `epoch` is the latest and began at or before `start_offset`.
        """
        epochs, starts = self._epochs, self._starts
        if epochs and epochs[-1] == epoch and starts[-1] <= start_offset:
            return
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset}")
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start_offset):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start_offset)
        self.dirty = True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The end of the largest epoch not above `epoch`: where the next one begins, or the log's end for the latest.

        An epoch before the first known one ends where that begins, so that a follower resumes at what is left of the
        log. (-1, -1) for an epoch above the latest, an undefined one, or where no epoch is known.
        """
        epochs = self._epochs
        if epoch == UNDEFINED_EPOCH or not epochs or epoch > epochs[-1]:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == epochs[-1]:
            return EpochEnd(epoch, log_end_offset)
        higher = bisect_right(epochs, epoch)
        found = epochs[higher - 1] if higher else epoch
        return EpochEnd(found, self._starts[higher])

    def truncate_from_end(self, end_offset: int) -> None:
        """Forgets the epochs that begin at or after `end_offset`."""
        kept = bisect_left(self._starts, end_offset)
        if kept < len(self._starts):
            del self._epochs[kept:]
            del self._starts[kept:]
            self.dirty = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Forgets the epochs that ended at or before `start_offset`; the one it lies in begins there from now on."""
        first = bisect_right(self._starts, start_offset) - 1
        if first > 0 or (first == 0 and self._starts[0] < start_offset):
            del self._epochs[:first]
            del self._starts[:first]
            self._starts[0] = start_offset
            self.dirty = True

    def clear(self) -> None:
        self.dirty = self.dirty or bool(self._epochs)
        self._epochs.clear()
        self._starts.clear()
