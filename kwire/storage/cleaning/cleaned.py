"""The files of a segment that a cleaning writes: `.cleaned` until it is complete, then `.swap`, then in its place.

    00000000000000004711.log.cleaned  .index.cleaned  .timeindex.cleaned  .txnindex.cleaned

What a start finds is put in order by `kwire.storage.swaps`.
"""

from __future__ import annotations

from contextlib import suppress

from kwire.ports.files import Buffer, FileSystem
from kwire.protocol.records.header import BatchHeader
from kwire.storage import layout
from kwire.storage.segment_indexes import SegmentIndexes
from kwire.storage.transaction_index import AbortedTransaction


class CleanedFiles:
    """A segment's files while they are written, by one worker thread at a time. Raises OSError."""

    def __init__(
        self, files: FileSystem, folder: str, base_offset: int, index_interval: int, buffer_bytes: int
    ) -> None:
        """Makes the .log file; one left by an attempt that was given up is emptied."""
        self.base_offset = base_offset
        self.size = 0
        """Bytes of the .log file, with what is not written yet."""
        self.transactions: list[AbortedTransaction] = []
        """Those whose abort marker is in it, in order."""
        self.indexes = SegmentIndexes.empty(base_offset)
        self._files = files
        self._folder = folder
        self._interval = index_interval
        self._buffer_bytes = buffer_bytes
        self._waiting: list[Buffer] = []
        self._written = 0
        self._log = files.open(self._path(layout.LOG, layout.CLEANED), create=True)
        self._log.truncate(0)

    def _path(self, suffix: str, state: str) -> str:
        return f"{self._folder}/{layout.segment_name(self.base_offset, suffix)}{state}"

    def append(self, header: BatchHeader, batch: Buffer) -> None:
        """The header is that of the batch as it is written."""
        self.indexes.add_header(self.size, header, self._interval)
        self._waiting.append(bytes(batch))
        self.size += header.size
        if self.size - self._written >= self._buffer_bytes:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._written += self._log.pwrite(self._waiting, self._written)
            self._waiting.clear()

    def complete(self) -> None:
        """Brings everything onto the disk."""
        self._flush()
        self._log.sync()
        self._log.close()
        if self.size:
            self.indexes.end()
            self.indexes.rewrite()
            self.indexes.offsets.persist(self._files, self._path(layout.OFFSET_INDEX, layout.CLEANED))
            self.indexes.times.persist(self._files, self._path(layout.TIME_INDEX, layout.CLEANED))
        if self.transactions:
            path = self._path(layout.TRANSACTION_INDEX, layout.CLEANED)
            self._files.write(path, b"".join(transaction.encode() for transaction in self.transactions))
        for path in self._paths(layout.CLEANED):
            self._files.open(path).sync()

    def _paths(self, state: str) -> list[str]:
        paths = (self._path(suffix, state) for suffix in layout.SEGMENT_SUFFIXES)
        return [path for path in paths if self._files.exists(path)]

    def rename(self, old: str, new: str) -> None:
        """From one state (CLEANED, SWAP, "") to the next. A crash amid that is as one before it, or after it."""
        for path in self._paths(old):
            self._files.rename(path, path.removesuffix(old) + new)

    def discard(self) -> None:
        """The attempt was given up."""
        for path in self._paths(layout.CLEANED):
            with suppress(FileNotFoundError):
                self._files.remove(path)
