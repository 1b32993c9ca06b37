"""One segment: a `.log` file of batches in offset order, and the indexes that belong to it.

A segment is written at its end only. Its size is what was written whole, wherever the file ends: a failed write is cut
off again, and a preallocated file or one with a reserve is longer until the segment is sealed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kwire.ports.files import Buffer, File, FileSystem
from kwire.protocol.records.header import HEADER_SIZE, LOG_OVERHEAD, read_header
from kwire.storage import early_writing, layout, reserve
from kwire.storage.batch_walk import SEARCH_WINDOW, headers, plausible
from kwire.storage.cold_reads import ColdRead
from kwire.storage.damage import Damaged, Found, batches, spans
from kwire.storage.missing_indexes import MissingIndexes
from kwire.storage.offset_index import OffsetIndex, OffsetPosition
from kwire.storage.open_files import OpenFiles
from kwire.storage.recent_batches import RecentBatches
from kwire.storage.roll_limits import UNKNOWN
from kwire.storage.segment_indexes import SegmentIndexes
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.time_index import NO_TIMESTAMP, TimeIndex, TimestampOffset
from kwire.storage.transaction_index import ENTRY_SIZE, AbortedTransaction, decode_transactions

if TYPE_CHECKING:
    from kwire.storage.received import Placed

_UNINDEXED_BYTES: Final = 4 * 1024 * 1024
"""An index that says nothing of more than so many bytes at the end has probably lost entries, and is built anew."""


class Segment:
    """A segment and what of it is open. Not for two threads at once, but for what says so."""

    __slots__ = (
        "_file",
        "_newest",
        "_transactions",
        "base_offset",
        "created_ms",
        "damaged",
        "dir",
        "files",
        "first_timestamp",
        "has_transactions",
        "index_interval",
        "indexes",
        "open_files",
        "recent",
        "reserve_due",
        "reserve_end",
        "roll_jitter_ms",
        "roll_limits",
        "size",
        "used",
        "version",
        "writing_due",
    )

    def __init__(
        self,
        files: FileSystem,
        open_files: OpenFiles,
        folder: str,
        base_offset: int,
        *,
        size: int,
        created_ms: int,
        index_interval: int,
        roll_jitter_ms: int = 0,
        has_transactions: bool = False,
    ) -> None:
        self.files = files
        self.open_files = open_files
        self.dir = folder
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.index_interval = index_interval
        self.roll_jitter_ms = roll_jitter_ms
        self.roll_limits = UNKNOWN
        self.first_timestamp: int | None = None
        """The largest timestamp of the first append, which the time to roll counts from; None where not known."""
        self.has_transactions = has_transactions
        self.indexes: SegmentIndexes | None = None
        """None while they are on disk only, or while there is no record; an append needs them."""
        self.recent: RecentBatches | None = None
        """Present in the segment that takes appends."""
        self.reserve_due = size + reserve.FIRST_AT
        """The size from which on there is to be more of a reserve."""
        self.reserve_end = 0
        """Where the reserve ends in the file; 0 where there is none."""
        self.used = False
        self.damaged: frozenset[int] = frozenset()
        """Positions of damage that the log was told of."""
        self.version = 0
        """Counts what makes a view of the content stale: truncations and the removal."""
        self.writing_due = early_writing.STEP
        """The size from which on the system is to begin to write what was appended. In a segment from before that is at
        once: what is on the disk is not written again."""
        self._file: File | None = None
        self._newest: TimestampOffset | None = None
        self._transactions: list[AbortedTransaction] | None = None

    @classmethod
    def create(
        cls,
        files: FileSystem,
        open_files: OpenFiles,
        folder: str,
        base_offset: int,
        *,
        created_ms: int,
        index_interval: int,
        roll_jitter_ms: int = 0,
        preallocate: int = 0,
    ) -> Segment:
        """An empty segment that takes appends. Its .log exists from now on, its indexes from its first append on."""
        segment = cls(
            files,
            open_files,
            folder,
            base_offset,
            size=0,
            created_ms=created_ms,
            index_interval=index_interval,
            roll_jitter_ms=roll_jitter_ms,
        )
        file = segment._file = files.open(segment.path(layout.LOG), create=True)
        open_files.opened(segment)
        if file.size():
            file.truncate(0)
        if preallocate:
            file.truncate(preallocate)
            segment.reserve_due = reserve.NEVER
        segment.begin_appends(base_offset)
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}, {self.size} bytes)"

    # Files

    def path(self, suffix: str) -> str:
        return f"{self.dir}/{layout.segment_name(self.base_offset, suffix)}"

    @property
    def file(self) -> File:
        """The log file, opened if need be."""
        file = self._file
        if file is None:
            path = self.path(layout.LOG)
            file = self._file = self.open_files.still_sent(self, path) or self.files.open(path)
            self.open_files.opened(self)
        self.used = True
        return file

    def drop_open(self) -> None:
        """Forgets the file and, of a sealed segment, the indexes; whoever still sends from the file keeps it open."""
        if self._file is not None:
            self.open_files.dropped(self, self._file)
            self._file = None
        self.drop_indexes()
        if self.indexes is None:
            self._transactions = None

    def drop_indexes(self) -> None:
        """Forgets the indexes of a sealed segment, but for its aborted transactions: there are few."""
        if self.recent is None and self.indexes is not None and self.indexes.settled:
            self._newest = self.indexes.newest
            self.indexes = None

    @property
    def index_bytes(self) -> int:
        """What the indexes of a sealed segment take in memory."""
        return 0 if self.recent is not None or self.indexes is None else self.indexes.size_bytes

    def forget_open(self) -> None:
        """Lets go of everything open: the segment is closed or removed."""
        self.drop_open()
        self.open_files.forget(self)

    def index_paths(self) -> list[str]:
        """The paths of the indexes that a segment with records has."""
        paths = [self.path(layout.OFFSET_INDEX), self.path(layout.TIME_INDEX)]
        if self.has_transactions:
            paths.append(self.path(layout.TRANSACTION_INDEX))
        return paths

    def existing_files(self) -> list[str]:
        """The paths of the segment's files that exist."""
        return [path for path in map(self.path, layout.SEGMENT_SUFFIXES) if self.files.exists(path)]

    # Indexes

    def load_indexes(self, file: File) -> SegmentIndexes:
        """From disk, or rebuilt where the files are missing or wrong. `file` is the segment's; for any thread."""
        if not self.size:
            return self.build_indexes(file)
        with contextlib.suppress(FileNotFoundError, CorruptIndex):
            indexes = SegmentIndexes.load(self.files, self.path(""), self.base_offset)
            last = indexes.offsets.last.position
            if (last < self.size or not last) and self.size - last <= _UNINDEXED_BYTES and len(indexes.times):
                return indexes
        return self.build_indexes(file)

    def build_indexes(self, file: File) -> SegmentIndexes:
        """From the batches' headers. `file` is the segment's; for any thread."""
        indexes = self.indexes  # another thread may drop it
        known = () if indexes is None else indexes.offsets.positions
        return SegmentIndexes.build(file, self.size, self.base_offset, self.index_interval, known)

    def ready_indexes(self, *, may_block: bool) -> SegmentIndexes:
        """The indexes, loaded if need be. Raises ColdRead if they must be and `may_block` is False."""
        if self.indexes is None:
            if not may_block:
                raise ColdRead(MissingIndexes(self, rebuild=False))
            self.install(self.load_indexes(self.file), None)
        assert self.indexes is not None
        return self.indexes

    def install(self, indexes: SegmentIndexes, transactions: list[AbortedTransaction] | None) -> None:
        """Takes loaded or rebuilt indexes; rebuilt ones are written."""
        self.indexes = indexes
        self._transactions = transactions
        self.open_files.indexes_loaded(self)
        if self.size:  # those of an empty segment are written with its first append
            self.persist_indexes()

    def begin_appends(self, next_offset: int) -> None:
        """This segment takes appends from now on; the next one is of `next_offset` or later."""
        self.recent = RecentBatches(next_offset)
        self.roll_limits = UNKNOWN

    @property
    def append_waits(self) -> bool:
        """Whether an append would read the indexes first: `load_indexes` in a worker thread, then `take_indexes`."""
        return self.indexes is None and self.size > 0

    def take_indexes(self, indexes: SegmentIndexes) -> None:
        """Takes what `load_indexes` gave, unless others were quicker."""
        if self.indexes is None:
            self.install(indexes, self._transactions)

    def persist_indexes(self) -> None:
        """Writes the index entries that the files lack."""
        if self.indexes is not None and not self.indexes.settled:
            self.indexes.persist(self.files, self.path(""))

    # Appending

    def append(self, buffers: Sequence[Buffer], batches: Sequence[Placed]) -> None:
        """Writes batches at the end by one gathered write: `buffers` are theirs, in order.

        Raises OSError, and the segment is as before.
        """
        position = self.size
        file = self._file or self.file
        self.used = True
        try:
            file.pwrite(buffers, position)
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(position)
            self.forget_reserve()
            raise
        indexes, recent = self.indexes or self.ready_indexes(may_block=True), self.recent
        assert recent is not None
        if position == 0:
            self.first_timestamp = max(batch.header.max_timestamp for batch in batches)
        indexed = not self.size  # the files of the indexes are made now
        for header, base_offset, _ in batches:
            last_offset = base_offset + header.last_offset_delta
            size = header.batch_length + LOG_OVERHEAD
            if indexes.add(last_offset, header.max_timestamp, position, size, self.index_interval):
                indexed = True
            recent.add(last_offset + 1, position)
            position += size
        if indexed:
            indexes.persist(self.files, self.path(""))
        self.size = position

    def make_reserve(self, limit: int) -> None:
        """To be called before an append where one is due. `limit`: segment.bytes."""
        end = reserve.make(self.file, self.size, self.reserve_end, limit)
        self.reserve_due = end - reserve.LEFT if end > max(self.size, self.reserve_end) else reserve.NEVER
        self.reserve_end = end

    def cut_reserve(self) -> None:
        """Ends the file where the segment ends, until enough was appended for another reserve. Raises OSError."""
        self.file.truncate(self.size)
        self.forget_reserve()

    def forget_reserve(self) -> None:
        """The file has none."""
        self.reserve_end = 0
        self.reserve_due = self.size + reserve.FIRST_AT

    def seal(self) -> None:
        """The segment takes no more appends: its indexes are completed and written, unless it is empty.

        For any thread, while nobody else uses the segment.
        """
        if self.size and self.indexes is not None:  # else nothing was appended since they were completed before
            self.indexes.end()
            self.persist_indexes()
        self.recent = None  # from now on the indexes may be dropped
        path = self.path(layout.LOG)
        if self.files.file_size(path) > self.size:  # preallocated, or with a reserve
            self.files.open(path).truncate(self.size)
        self.forget_reserve()

    def begin_writing(self, start: int, end: int) -> None:
        """Has the system begin to bring [start, end) to the disk, unless it was closed meanwhile. For any thread."""
        file = self._file
        if file is not None:
            file.begin_writing(start, end - start)

    # Reading

    def find(self, offset: int, *, may_block: bool = True) -> tuple[int, int] | None:
        """(position, size) of the first batch that ends at or after `offset`; None where the segment has none.

        Raises ColdRead where `may_block` is False and that cannot be said from memory; Damaged where no batch is there
        that could have it.
        """
        if self.recent is not None and (found := self.recent.find(offset, self.size)) is not None:
            return found
        if not self.size:
            return None
        indexes = self.ready_indexes(may_block=may_block)
        if (found := self._find_indexed(indexes.offsets, offset)) is not None:
            return found
        try:
            return self._find_from(indexes.offsets.floor(offset), offset, may_block)
        except CorruptIndex:
            if self.recent is None and not may_block:
                raise ColdRead(MissingIndexes(self, rebuild=True)) from None
            rebuilt = self.build_indexes(self.file)
            self.install(rebuilt, self._transactions)
            return self._find_from(rebuilt.offsets.floor(offset), offset, may_block)

    def _find_indexed(self, index: OffsetIndex, offset: int) -> tuple[int, int] | None:
        """As `find`, where the batch has an entry in the index and its header is in memory; else None.

        As most batches of `index.interval.bytes` and more have: 61 bytes are read, by one call of the system, instead
        of all headers from the entry before on.
        """
        entry = index.ceiling(offset)
        if entry is None or entry.position + HEADER_SIZE > self.size:
            return None
        data = self.file.read_resident(HEADER_SIZE, entry.position)
        if data is None:
            return None
        header = read_header(data)
        as_told = header.base_offset <= offset and header.last_offset == entry.offset
        return (entry.position, header.size) if as_told and plausible(header, self.size - entry.position) else None

    def _find_from(self, entry: OffsetPosition, offset: int, may_block: bool) -> tuple[int, int] | None:
        """As `find`, by the headers from an index entry on. Raises CorruptIndex where no batch of it is there."""
        for position, header, damaged in self._batches_from(entry, may_block=may_block):
            if header.last_offset >= offset:
                if damaged is not None and offset < header.base_offset:
                    if not spans(self.file, damaged, position, offset):
                        raise Damaged(self.file.path, damaged)
                    return damaged, position - damaged
                return position, header.size
        return None

    def _batches_from(self, entry: OffsetPosition, *, may_block: bool = True) -> Iterator[Found]:
        """What is there from an index entry on.

        Raises CorruptIndex where no batch of the entry is there, Damaged where the segment's end is no batch.
        """
        known = () if self.indexes is None else self.indexes.offsets.positions
        start, end = entry.position, self.size
        first = start if start else None
        try:
            for found in batches(
                self.file, start, end, self.base_offset, known, may_block=may_block, told=self.damaged
            ):
                if found.position == first and not self.base_offset <= found.header.base_offset <= entry.offset:
                    break
                first = None
                if found.damaged is not None:
                    self.damaged |= {found.damaged}
                yield found
        except Damaged as error:
            self.damaged |= {error.position}
            raise
        if first is not None:
            raise CorruptIndex(f"no batch of {entry.offset} at {start}")

    def next_offset(self) -> int:
        """The offset after the last batch: by the index's last entry and the headers from there on.

        Raises CorruptBatchError where the file does not end with a whole batch.
        """
        if not self.size:
            return self.base_offset
        try:
            return self._next_offset_from(self._last_entry())
        except CorruptIndex:
            rebuilt = self.build_indexes(self.file)
            self.install(rebuilt, self._transactions)
            return self._next_offset_from(rebuilt.offsets.last)

    def _last_entry(self) -> OffsetPosition:
        """The offset index's last entry; the beginning, where it is not far from there to the end."""
        if self.size <= SEARCH_WINDOW:
            return OffsetPosition(self.base_offset, 0)
        if self.indexes is None:
            with contextlib.suppress(FileNotFoundError, CorruptIndex):
                last = OffsetIndex.read_last(self.files, self.path(layout.OFFSET_INDEX), self.base_offset)
                if last.position < self.size and self.size - last.position <= _UNINDEXED_BYTES:
                    return last
        return self.ready_indexes(may_block=True).offsets.last

    def _next_offset_from(self, entry: OffsetPosition) -> int:
        next_offset = self.base_offset
        for _, header, _ in self._batches_from(entry):
            next_offset = header.next_offset
        return next_offset

    @property
    def newest(self) -> TimestampOffset | None:
        """The largest timestamp and the last offset of its batch; (-1, base offset) where no record has one.

        None where that is on disk only: `load_newest` in a worker thread, then `newest = …`.
        """
        if self.indexes is not None:
            return self.indexes.newest
        return self._newest if self.size else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    @newest.setter
    def newest(self, newest: TimestampOffset) -> None:
        self._newest = newest

    def load_newest(self) -> TimestampOffset:
        """From the time index's last entry. For any thread."""
        with contextlib.suppress(FileNotFoundError):
            file = self.files.open(self.path(layout.TIME_INDEX))
            size = file.size()
            if size and size % TimeIndex.entry_size == 0:
                last = file.pread(TimeIndex.entry_size, max(0, size - TimeIndex.entry_size))
                return TimeIndex.decode_last(self.base_offset, last)
        return self.load_indexes(self.files.open(self.path(layout.LOG))).newest

    def newest_ms(self, newest: TimestampOffset) -> int:
        """The time of the newest record, where `newest` is what `load_newest` says. Raises OSError."""
        return newest.timestamp if newest.timestamp >= 0 else self.modified_ms()

    def modified_ms(self) -> int:
        """When the file was last written: the time of records that have none."""
        return self.files.modified_ms(self.path(layout.LOG))

    # Aborted transactions

    def load_transactions(self) -> list[AbortedTransaction]:
        """From disk. Raises CorruptIndex. For any thread."""
        if not self.has_transactions:
            return []
        return decode_transactions(self.files.read(self.path(layout.TRANSACTION_INDEX)), self.base_offset)

    def transactions(self) -> list[AbortedTransaction]:
        """Those whose abort marker lies in this segment. Raises CorruptIndex."""
        if not self.has_transactions:
            return []
        if self._transactions is None:
            self._transactions = self.load_transactions()
        return self._transactions

    def add_transaction(self, transaction: AbortedTransaction) -> None:
        known = self.transactions()
        file = self.files.open(self.path(layout.TRANSACTION_INDEX), create=True)
        file.truncate(len(known) * ENTRY_SIZE)
        file.pwrite([transaction.encode()], len(known) * ENTRY_SIZE)
        file.close()
        self.has_transactions = True
        self._transactions = known
        known.append(transaction)

    def drop_transactions(self, from_offset: int) -> None:
        """Forgets those whose marker is at or after `from_offset`."""
        if not self.has_transactions:
            return
        kept = []
        if from_offset > self.base_offset:
            kept = [transaction for transaction in self.transactions() if transaction.last_offset < from_offset]
        file = self.files.open(self.path(layout.TRANSACTION_INDEX))
        file.truncate(len(kept) * ENTRY_SIZE)
        file.close()
        self._transactions = kept

    # Truncating

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drops every batch that ends at or after `offset`; the segment takes appends afterwards."""
        try:
            found = self.find(offset)
        except Damaged as error:  # what can't be read is where that offset is, or before it: it goes as well
            found = error.position, 0
        indexes = self.ready_indexes(may_block=True)
        self.version += 1
        if found is not None:
            self.file.truncate(found[0])
            self.size = found[0]
            self.forget_reserve()
            self.writing_due = self.size + early_writing.STEP
        self.drop_transactions(offset)
        indexes.truncate_to(offset)
        indexes.newest = self._scan_newest(indexes)
        indexes.persist(self.files, self.path(""))
        self._newest = None
        self.begin_appends(offset)
        if self.size == 0:
            self.created_ms = now_ms
            self.first_timestamp = None

    def _scan_newest(self, indexes: SegmentIndexes) -> TimestampOffset:
        newest = indexes.times.last
        for _, header in headers(self.file, indexes.offsets.floor(newest.offset).position, self.size):
            if header.max_timestamp > newest.timestamp:
                newest = TimestampOffset(header.max_timestamp, header.last_offset)
        return newest
