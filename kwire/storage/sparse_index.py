"""What the offset index and the time index share: two ascending columns in memory, and a file that follows them.

An index is a hint. Its entries are kept in memory and written behind, a few KB at a time, when the segment is rolled,
flushed or closed: losing the last of them in a crash costs nothing, since recovery rebuilds the index of every
segment that was not flushed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from contextlib import suppress
from itertools import islice
from operator import lt
from typing import ClassVar, Final

from kwire.ports.files import FileSystem

WRITE_BEHIND_ENTRIES: Final = 512
"""So many unwritten entries make a write worth its system calls: 4 to 6 KB, for at least 2 MB of log."""


class CorruptIndex(Exception):
    """An index file cannot belong to its segment; it is rebuilt from the log."""


def ascends(column: array[int]) -> bool:
    """Whether each value is greater than the one before it."""
    return all(map(lt, column, islice(column, 1, None)))


class SparseIndex(ABC):
    """The part of an index that keeps its file in step; the subclass owns the columns."""

    __slots__ = ("_on_disk", "_shrunk", "base_offset")

    entry_size: ClassVar[int]

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._on_disk = 0
        self._shrunk = False

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def encode(self, first: int = 0) -> bytes:
        """The entries from number `first` on, in the file's format."""

    @property
    def settled(self) -> bool:
        """Whether the file has exactly these entries."""
        return len(self) == self._on_disk and not self._shrunk

    def is_full(self, max_bytes: int, reserved: int = 0) -> bool:
        """Whether a file of at most `max_bytes` (segment.index.bytes) has no room but for `reserved` entries."""
        return len(self) >= max_bytes // self.entry_size - reserved

    def persist(self, files: FileSystem, path: str) -> None:
        """Brings the file (created if missing) up to date."""
        if self.settled or self._found_settled(files, path):
            return
        file = files.open(path, create=True)
        try:
            if self._on_disk < len(self):
                file.pwrite([self.encode(self._on_disk)], self._on_disk * self.entry_size)
                self._on_disk = len(self)
            if (
                self._shrunk
            ):  # after the write: what is cut to nothing and written anew, ext4 brings onto the disk at once
                file.truncate(self._on_disk * self.entry_size)
                self._shrunk = False
        finally:
            file.close()

    def distrust_file(self) -> None:
        """The file may hold anything: the next `persist` writes it from its beginning, unless it is right."""
        self._on_disk = 0
        self._shrunk = True

    def _found_settled(self, files: FileSystem, path: str) -> bool:
        """Whether a file that was not trusted has just these entries: a recovery finds most of them so."""
        if self._on_disk or not self._shrunk:
            return False
        with suppress(FileNotFoundError):
            if files.read(path) == self.encode():
                self._on_disk = len(self)
                self._shrunk = False
        return self.settled

    def _entries_dropped(self) -> None:
        """To be called after the columns got shorter."""
        if self._on_disk > len(self):
            self._on_disk = len(self)
            self._shrunk = True
