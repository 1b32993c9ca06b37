"""The offset and the time index of one segment, growing with it."""

from __future__ import annotations

from collections.abc import Collection

from kwire.ports.files import File, FileSystem
from kwire.protocol.records.header import BatchHeader
from kwire.storage import layout
from kwire.storage.damage import readable
from kwire.storage.offset_index import OffsetIndex
from kwire.storage.sparse_index import WRITE_BEHIND_ENTRIES
from kwire.storage.time_index import TimeIndex, TimestampOffset


class SegmentIndexes:
    """Both indexes and what decides about the next entry."""

    __slots__ = ("_bytes_since_entry", "_newest_offset", "_newest_timestamp", "_waiting", "offsets", "times")

    def __init__(self, offsets: OffsetIndex, times: TimeIndex) -> None:
        self.offsets = offsets
        self.times = times
        self._newest_timestamp, self._newest_offset = times.last
        self._bytes_since_entry = 0
        self._waiting = 0
        """Entries since the files were written."""

    @property
    def size_bytes(self) -> int:
        """In memory, about."""
        return len(self.offsets) * self.offsets.entry_size + len(self.times) * self.times.entry_size

    @property
    def newest(self) -> TimestampOffset:
        """The largest timestamp so far and the last offset of the batch that brought it."""
        return TimestampOffset(self._newest_timestamp, self._newest_offset)

    @newest.setter
    def newest(self, newest: TimestampOffset) -> None:
        self._newest_timestamp, self._newest_offset = newest

    @classmethod
    def empty(cls, base_offset: int) -> SegmentIndexes:
        return cls(OffsetIndex(base_offset), TimeIndex(base_offset))

    @classmethod
    def load(cls, files: FileSystem, prefix: str, base_offset: int) -> SegmentIndexes:
        """From the files named `prefix` + suffix. Raises FileNotFoundError or CorruptIndex."""
        return cls(
            OffsetIndex.decode(base_offset, files.read(prefix + layout.OFFSET_INDEX)),
            TimeIndex.decode(base_offset, files.read(prefix + layout.TIME_INDEX)),
        )

    @classmethod
    def build(
        cls, file: File, size: int, base_offset: int, interval: int, known: Collection[int] = ()
    ) -> SegmentIndexes:
        """From the headers of a segment's batches; its files will be written anew.

        `known`: where batches begin, as far as that is known in spite of all.
        """
        indexes = cls.empty(base_offset)
        for position, header in readable(file, 0, size, base_offset, known):
            indexes.add_header(position, header, interval)
        indexes.end()
        indexes.rewrite()
        return indexes

    def add(self, last_offset: int, max_timestamp: int, position: int, size: int, interval: int) -> bool:
        """Counts in the batch that was appended at `position`; whether so many entries wait that a write is due."""
        if max_timestamp > self._newest_timestamp:
            self._newest_timestamp = max_timestamp
            self._newest_offset = last_offset
        if self._bytes_since_entry <= interval:
            self._bytes_since_entry += size
            return False
        self.offsets.append(last_offset, position)
        self.times.maybe_append(self._newest_timestamp, self._newest_offset)
        self._bytes_since_entry = size
        self._waiting += 1
        return self._waiting >= WRITE_BEHIND_ENTRIES

    def add_header(self, position: int, header: BatchHeader, interval: int) -> None:
        self.add(header.last_offset, header.max_timestamp, position, header.size, interval)

    def end(self) -> None:
        """The segment takes no more batches: its newest timestamp becomes the time index's last entry."""
        self.times.maybe_append(self._newest_timestamp, self._newest_offset)

    def truncate_to(self, offset: int) -> None:
        """Drops the entries at or after `offset`; `newest` is then to be found anew."""
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self._bytes_since_entry = 0

    def is_full(self, max_bytes: int) -> bool:
        """Whether segment.index.bytes leaves no room; the time index keeps a place for its last entry."""
        return self.offsets.is_full(max_bytes) or self.times.is_full(max_bytes, reserved=1)

    def rewrite(self) -> None:
        """The files are to be written from their beginning, whatever they hold."""
        self.offsets.distrust_file()
        self.times.distrust_file()

    @property
    def settled(self) -> bool:
        """Whether the files have all entries."""
        return self.offsets.settled and self.times.settled

    def persist(self, files: FileSystem, prefix: str) -> None:
        """Brings the files up to date."""
        self._waiting = 0
        self.offsets.persist(files, prefix + layout.OFFSET_INDEX)
        self.times.persist(files, prefix + layout.TIME_INDEX)
