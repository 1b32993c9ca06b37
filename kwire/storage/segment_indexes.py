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

    __slots__ = ("_bytes_since_entry", "newest", "offsets", "times")

    def __init__(self, offsets: OffsetIndex, times: TimeIndex) -> None:
        self.offsets = offsets
        self.times = times
        self.newest: TimestampOffset = times.last
        """The largest timestamp so far and the last offset of the batch that brought it."""
        self._bytes_since_entry = 0

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
        """Counts in the batch that was appended at `position`; whether it got an entry."""
        if max_timestamp > self.newest[0]:
            self.newest = TimestampOffset(max_timestamp, last_offset)
        if self._bytes_since_entry <= interval:
            self._bytes_since_entry += size
            return False
        self.offsets.append(last_offset, position)
        self.times.maybe_append(*self.newest)
        self._bytes_since_entry = size
        return True

    def add_header(self, position: int, header: BatchHeader, interval: int) -> None:
        self.add(header.last_offset, header.max_timestamp, position, header.size, interval)

    def end(self) -> None:
        """The segment takes no more batches: its newest timestamp becomes the time index's last entry."""
        self.times.maybe_append(*self.newest)

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

    @property
    def due(self) -> bool:
        """Whether enough entries wait for a write to be worth it."""
        return self.offsets.unwritten >= WRITE_BEHIND_ENTRIES

    def persist(self, files: FileSystem, prefix: str) -> None:
        """Brings the files up to date."""
        self.offsets.persist(files, prefix + layout.OFFSET_INDEX)
        self.times.persist(files, prefix + layout.TIME_INDEX)
