"""Looking things up in an index file without reading all of it: an index of a remote segment is used a few times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from struct import Struct
from typing import Protocol

from kwire.storage.offset_index import OffsetPosition
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.time_index import NO_TIMESTAMP, TimestampOffset

_OFFSET_ENTRY = Struct(">II")
_TIME_ENTRY = Struct(">qI")


class IndexFile(Protocol):
    """What is needed of an index file, or of what stands for one. Its methods may raise OSError."""

    @property
    def path(self) -> str: ...

    def pread(self, size: int, position: int) -> bytes: ...

    def size(self) -> int: ...


class _Entries:
    """The entries of an index file as a sequence of one of their columns, for bisect."""

    def __init__(self, file: IndexFile, entry: Struct, column: int) -> None:
        size = file.size()
        if size % entry.size:
            raise CorruptIndex(f"{file.path}: {size} bytes are not a multiple of {entry.size}")
        self._file = file
        self._entry = entry
        self._column = column
        self._count = size // entry.size

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> int:
        value: int = self.entry(number)[self._column]
        return value

    def entry(self, number: int) -> tuple[int, int]:
        first, second = self._entry.unpack(self._file.pread(self._entry.size, number * self._entry.size))
        return first, second


class OffsetIndexFile:
    """A `.index` file. Reads are of a few bytes each, of a file that was just used: for the event loop."""

    def __init__(self, file: IndexFile, base_offset: int) -> None:
        """Raises CorruptIndex, OSError."""
        self._by_offset = _Entries(file, _OFFSET_ENTRY, 0)
        self._by_position = _Entries(file, _OFFSET_ENTRY, 1)
        self._base_offset = base_offset

    def floor(self, offset: int) -> OffsetPosition:
        """The last entry at or before `offset`; (base offset, 0) where there is none."""
        return self._entry(_number(bisect_right, self._by_offset, offset - self._base_offset) - 1)

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry at or after a place in the segment; None where there is none."""
        number = _number(bisect_left, self._by_position, position)
        return self._entry(number).offset if number < len(self._by_position) else None

    def _entry(self, number: int) -> OffsetPosition:
        if number < 0:
            return OffsetPosition(self._base_offset, 0)
        offset, position = self._by_offset.entry(number)
        return OffsetPosition(self._base_offset + offset, position)


class TimeIndexFile:
    """A `.timeindex` file, likewise."""

    def __init__(self, file: IndexFile, base_offset: int) -> None:
        """Raises CorruptIndex, OSError."""
        self._by_time = _Entries(file, _TIME_ENTRY, 0)
        self._base_offset = base_offset

    def floor(self, timestamp: int) -> TimestampOffset:
        """The last entry not newer than `timestamp`; (-1, base offset) where there is none."""
        number = _number(bisect_right, self._by_time, timestamp) - 1
        if number < 0:
            return TimestampOffset(NO_TIMESTAMP, self._base_offset)
        found, offset = self._by_time.entry(number)
        return TimestampOffset(found, self._base_offset + offset)


def _number(bisect: Callable[..., int], entries: _Entries, value: int) -> int:
    return bisect(entries, value)
