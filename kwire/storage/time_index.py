"""From a timestamp to an offset: up to the entry's offset, no record of the segment is newer than its timestamp.

.timeindex, big endian, 12 bytes an entry, both columns ascending
    timestamp        int64     ms since the epoch: the largest one so far
    relative offset  uint32    the last offset of the batch that brought it, less the segment's base offset
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import Final, NamedTuple

from kwire.storage.sparse_index import CorruptIndex, SparseIndex, ascends

NO_TIMESTAMP: Final = -1

_ENTRY: Final = struct.Struct(">qI")


class TimestampOffset(NamedTuple):
    """A timestamp and the last offset of the batch that brought it; (-1, base offset) where there is none."""

    timestamp: int
    offset: int


class TimeIndex(SparseIndex):
    """The time index of one segment."""

    __slots__ = ("_offsets", "_timestamps")

    entry_size = _ENTRY.size

    def __init__(self, base_offset: int) -> None:
        super().__init__(base_offset)
        self._timestamps = array("q")
        self._offsets = array("I")

    @classmethod
    def decode(cls, base_offset: int, data: bytes) -> TimeIndex:
        """Raises `CorruptIndex` where the data cannot be an index."""
        if len(data) % cls.entry_size:
            raise CorruptIndex(f"{len(data)} bytes are not a multiple of {cls.entry_size}")
        index = cls(base_offset)
        if data:
            timestamps, offsets = zip(*_ENTRY.iter_unpack(data), strict=True)
            index._timestamps, index._offsets = array("q", timestamps), array("I", offsets)
        index._on_disk = len(index)
        if not ascends(index._timestamps) or not ascends(index._offsets):
            raise CorruptIndex("the entries do not ascend")
        return index

    @classmethod
    def decode_last(cls, base_offset: int, entry: bytes) -> TimestampOffset:
        """Of the file's last 12 bytes; of none, (-1, base offset)."""
        if len(entry) != cls.entry_size:
            return TimestampOffset(NO_TIMESTAMP, base_offset)
        timestamp, offset = _ENTRY.unpack(entry)
        return TimestampOffset(timestamp, base_offset + offset)

    def __len__(self) -> int:
        return len(self._offsets)

    def encode(self, first: int = 0) -> bytes:
        return b"".join(map(_ENTRY.pack, self._timestamps[first:], self._offsets[first:]))

    @property
    def last(self) -> TimestampOffset:
        return self.entry(len(self._offsets) - 1)

    def entry(self, number: int) -> TimestampOffset:
        """Entry `number`; (-1, base offset) for -1."""
        if number < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(self._timestamps[number], self.base_offset + self._offsets[number])

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Adds an entry where `timestamp` and `offset` are greater than the last ones; else does nothing."""
        if self._offsets:
            if timestamp <= self._timestamps[-1] or offset - self.base_offset <= self._offsets[-1]:
                return
        elif timestamp < 0:
            return
        self._offsets.append(offset - self.base_offset)  # first: as in the offset index
        self._timestamps.append(timestamp)

    def floor(self, timestamp: int) -> TimestampOffset:
        """The last entry not newer than `timestamp`: a newer record has a greater offset than the entry."""
        return self.entry(bisect_right(self._timestamps, timestamp) - 1)

    def truncate_to(self, offset: int) -> None:
        """Drops the entries at or after `offset`."""
        kept = bisect_left(self._offsets, max(offset - self.base_offset, 0))
        del self._timestamps[kept:]
        del self._offsets[kept:]
        self._entries_dropped()
