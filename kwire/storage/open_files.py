"""A bound on open files: of thousands of segments, those used lately keep a descriptor and their indexes.

Dropping a segment's file only forgets a reference. A `FileSlice` that waits to be sent has its own, and the descriptor
closes with the last one: no slice ever meets a descriptor number that means another file by now.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol


class Openable(Protocol):
    """What has something open that can be dropped and opened again."""

    used: bool
    """Set at each use; says that the turn to be dropped should pass by once."""

    def drop_open(self) -> None:
        """Lets go of what is open."""


class OpenFiles:
    """Those open now, in the order of their opening; the second-chance algorithm picks who is dropped."""

    __slots__ = ("_limit", "_open")

    def __init__(self, limit: int = 512) -> None:
        self._limit = limit
        self._open: OrderedDict[int, Openable] = OrderedDict()
        """By identity."""

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, newcomer: Openable) -> None:
        """Counts in a newcomer and, over the limit, drops somebody not used since his last turn."""
        newcomer.used = True
        for _ in range(2 * len(self._open)):
            if len(self._open) < self._limit:
                break
            number, candidate = self._open.popitem(last=False)
            if candidate.used:
                candidate.used = False
                self._open[number] = candidate
            else:
                candidate.drop_open()
        self._open[id(newcomer)] = newcomer

    def forget(self, gone: Openable) -> None:
        """Counts out one that was closed for good; nothing happens where it is not open."""
        self._open.pop(id(gone), None)
