"""A bound on open files: of thousands of segments, those used lately keep a descriptor and their indexes, as many of
these as have room in INDEX_BYTES.

Dropping a segment's file only forgets a reference. A `FileSlice` that waits to be sent has its own, and the descriptor
closes with the last one: no slice ever meets a descriptor number that means another file by now. Until then the segment
finds its file again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol
from weakref import WeakValueDictionary

from kwire.ports.files import File

INDEX_BYTES = 24 * 1024 * 1024
"""What the indexes of sealed segments take in memory, all together, but for a few that were loaded since the last look:
of a segment of 1 GiB it is 1.3 MB with the producers' default batches, and 5 with small ones."""

_LOOKED_AT = 64
"""A look goes through all that is open: of these so many for each opening and load, on an average, and no more."""


class Openable(Protocol):
    """What has something open that can be dropped and opened again."""

    used: bool
    """Set at each use; says that the turn to be dropped should pass by once."""

    @property
    def index_bytes(self) -> int:
        """What `drop_indexes` would give back."""

    def drop_open(self) -> None:
        """Lets go of what is open."""

    def drop_indexes(self) -> None:
        """Lets go of what can be read from the disk again."""


class OpenFiles:
    """Those open now, in the order of their opening; the second-chance algorithm picks who is dropped."""

    __slots__ = ("_dropped", "_limit", "_open", "_until_look")

    def __init__(self, limit: int = 512) -> None:
        self._limit = limit
        self._until_look = 1
        self._open: OrderedDict[int, Openable] = OrderedDict()
        """By identity."""
        self._dropped: WeakValueDictionary[int, File] | None = None
        """Files that were dropped, by whose they are, as long as an answer is to be sent from them. Seldom needed.

        By identity too: at the same path there may be another log's file by then, of a topic made anew or moved back.
        """

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
        self._bound_indexes(newcomer)

    def indexes_loaded(self, by: Openable) -> None:
        """Counts in what somebody has read of his indexes."""
        if id(by) in self._open:
            self._open.move_to_end(id(by))
        self._bound_indexes(by)

    @property
    def _pause(self) -> int:
        """Openings and loads until the next look."""
        return 1 + len(self._open) // _LOOKED_AT

    def _bound_indexes(self, needed: Openable) -> None:
        """Those keep their indexes that were opened last, or read them last."""
        self._until_look -= 1
        if self._until_look:
            return
        self._until_look = self._pause
        left = INDEX_BYTES
        for segment in reversed(self._open.values()):
            left -= segment.index_bytes
            if left < 0 and segment is not needed:
                segment.drop_indexes()

    def dropped(self, by: Openable, file: File) -> None:
        """Notes a file that somebody lets go of; he calls `forget` when he is closed for good."""
        if self._dropped is None:
            self._dropped = WeakValueDictionary()
        self._dropped[id(by)] = file

    def still_sent(self, by: Openable, path: str) -> File | None:
        """The file that he let go of, where it is still open and of this path; it is noted no longer.

        Opened once more for each of them, answers to clients that take them slowly would use up the descriptors.
        """
        file = None if self._dropped is None else self._dropped.pop(id(by), None)
        return file if file is not None and file.path == path else None

    def forget(self, gone: Openable) -> None:
        """Counts out one that was closed for good; nothing happens where it is not open."""
        if self._open.pop(id(gone), None) is not None:
            self._until_look = min(self._until_look, self._pause)
        if self._dropped is not None:
            self._dropped.pop(id(gone), None)
