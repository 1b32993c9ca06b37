"""From an offset to a place in the segment: one entry about every `index.interval.bytes`.

.index, big endian, 8 bytes an entry, both columns ascending
    relative offset  uint32    the last offset of a batch, less the segment's base offset
    position         uint32    where in the .log that batch begins
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from typing import Final, NamedTuple

from kwire.ports.files import FileSystem
from kwire.storage.sparse_index import CorruptIndex, SparseIndex, ascends

MAX_RELATIVE_OFFSET: Final = 2**31 - 1


class OffsetPosition(NamedTuple):
    """A batch's last offset and where the batch begins; (base offset, 0) stands for the segment's beginning."""

    offset: int
    position: int


class OffsetIndex(SparseIndex):
    """The offset index of one segment."""

    __slots__ = ("_offsets", "_positions")

    entry_size = 8

    def __init__(self, base_offset: int) -> None:
        super().__init__(base_offset)
        self._offsets = array("I")
        self._positions = array("I")

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> OffsetIndex:
        """Raises `CorruptIndex` where the data cannot be an index."""
        if len(data) % cls.entry_size:
            raise CorruptIndex(f"{len(data)} bytes are not a multiple of {cls.entry_size}")
        index = cls(base_offset)
        columns = array("I", data)
        if sys.byteorder == "little":
            columns.byteswap()
        index._offsets, index._positions = columns[0::2], columns[1::2]
        index._on_disk = len(index)
        if not ascends(index._offsets) or not ascends(index._positions):
            raise CorruptIndex("the entries do not ascend")
        if index._offsets and index._offsets[-1] > MAX_RELATIVE_OFFSET:
            raise CorruptIndex("the last offset is out of range")
        return index

    @classmethod
    def read_last(cls, files: FileSystem, path: str, base_offset: int) -> OffsetPosition:
        """The last entry of a file, of which nothing else is read. Raises FileNotFoundError, CorruptIndex, OSError."""
        file = files.open(path)
        size = file.size()
        if size % cls.entry_size:
            raise CorruptIndex(f"{size} bytes are not a multiple of {cls.entry_size}")
        if not size:
            return OffsetPosition(base_offset, 0)
        return cls.decode(base_offset, file.pread(cls.entry_size, size - cls.entry_size)).last

    def __len__(self) -> int:
        return len(self._offsets)

    def encode(self, first: int = 0) -> bytes:
        columns = array("I", bytes((len(self) - first) * self.entry_size))
        columns[0::2], columns[1::2] = self._offsets[first:], self._positions[first:]
        if sys.byteorder == "little":
            columns.byteswap()
        return columns.tobytes()

    @property
    def last(self) -> OffsetPosition:
        return self.entry(len(self._offsets) - 1)

    def entry(self, number: int) -> OffsetPosition:
        """Entry `number`; the segment's beginning for -1."""
        if number < 0:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + self._offsets[number], self._positions[number])

    def append(self, last_offset: int, position: int) -> None:
        """Adds a batch; `last_offset` and `position` are greater than those before."""
        self._positions.append(position)  # first: whoever finds the offset, in another thread, finds its position
        self._offsets.append(last_offset - self.base_offset)

    def floor(self, offset: int) -> OffsetPosition:
        """The last entry at or before `offset`: the batch that holds `offset` begins there or after."""
        return self.entry(bisect_right(self._offsets, max(offset - self.base_offset, -1)) - 1)

    def ceiling(self, offset: int) -> OffsetPosition | None:
        """The first entry at or after `offset`: the batch that begins there ends at or after it."""
        offsets = self._offsets
        number = bisect_left(offsets, max(offset - self.base_offset, 0))
        return self.entry(number) if number < len(offsets) else None

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry at or after a place in the file; None where there is none."""
        found = bisect_left(self._positions, position)
        return self.base_offset + self._offsets[found] if found < len(self._positions) else None

    @property
    def positions(self) -> Collection[int]:
        """Where batches begin, as far as the index knows, ascending."""
        return self._positions

    def truncate_to(self, offset: int) -> None:
        """Drops the entries at or after `offset`."""
        kept = bisect_left(self._offsets, max(offset - self.base_offset, 0))
        del self._offsets[kept:]
        del self._positions[kept:]
        self._entries_dropped()
