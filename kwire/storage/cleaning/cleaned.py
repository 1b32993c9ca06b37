"""The files of a segment that a cleaning writes: `.cleaned` until it is complete, then `.swap`, then in its place.

    00000000000000004711.log.cleaned  .index.cleaned  .timeindex.cleaned  .txnindex.cleaned

What a start finds is put in order by `kwire.storage.swaps`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from kwire.ports.files import Buffer, FileSystem
from kwire.protocol.records.header import BatchHeader
from kwire.storage import layout
from kwire.storage.segment_indexes import SegmentIndexes
from kwire.storage.time_index import TimestampOffset
from kwire.storage.transaction_index import AbortedTransaction

_SYNC_BYTES = 32 * 1024 * 1024
"""To write before they are brought onto the disk: all of a gigabyte at once would hold up whoever else writes."""


class CleanedSegment(NamedTuple):
    """A segment whose `.cleaned` files are complete."""

    base_offset: int
    size: int
    newest: TimestampOffset
    has_transactions: bool


class CleanedFiles:
    """A segment's files while they are written. Raises OSError."""

    def __init__(
        self, files: FileSystem, folder: str, base_offset: int, index_interval: int, buffer_bytes: int
    ) -> None:
        """Makes the .log file; those left by an attempt that was given up are removed."""
        discard(files, folder, base_offset)
        self.base_offset = base_offset
        self.size = 0
        """Bytes of the .log file, with what is not written yet."""
        self._indexes = SegmentIndexes.empty(base_offset)
        self._files = files
        self._folder = folder
        self._interval = index_interval
        self._buffer_bytes = buffer_bytes
        self._waiting: list[Buffer] = []
        self.written = 0
        """Bytes of it that are."""
        self._synced = 0
        self._log = files.open(self._path(layout.LOG), create=True)

    def _path(self, suffix: str) -> str:
        return _path(self._folder, self.base_offset, suffix, layout.CLEANED)

    def append(self, header: BatchHeader, batch: Buffer) -> None:
        """The header is that of the batch as it is written."""
        self._indexes.add_header(self.size, header, self._interval)
        self._waiting.append(bytes(batch))
        self.size += header.size
        if self.size - self.written >= self._buffer_bytes:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self.written += self._log.pwrite(self._waiting, self.written)
            self._waiting.clear()
            if self.written - self._synced >= _SYNC_BYTES:
                self._log.sync()
                self._synced = self.written

    def complete(self, transactions: Sequence[AbortedTransaction]) -> CleanedSegment:
        """Brings everything onto the disk. `transactions`: those whose abort marker is in it, in order."""
        self._flush()
        self._log.sync()
        self._log.close()
        if self.size:
            self._indexes.end()
            self._indexes.rewrite()
            self._indexes.offsets.persist(self._files, self._path(layout.OFFSET_INDEX))
            self._indexes.times.persist(self._files, self._path(layout.TIME_INDEX))
        if transactions:
            data = b"".join(transaction.encode() for transaction in transactions)
            self._files.write(self._path(layout.TRANSACTION_INDEX), data)
        for path in _paths(self._files, self._folder, self.base_offset, layout.CLEANED):
            self._files.open(path).sync()
        return CleanedSegment(self.base_offset, self.size, self._indexes.newest, bool(transactions))


def rename(files: FileSystem, folder: str, base_offset: int, old: str, new: str) -> None:
    """From one state (CLEANED, SWAP, "") to the next. A crash amid that is as one before it, or after it."""
    for path in _paths(files, folder, base_offset, old):
        files.rename(path, path.removesuffix(old) + new)


def make_ready(files: FileSystem, folder: str, base_offset: int) -> None:
    """A start after a crash takes the segment from now on: only now the old ones may go. For a worker thread."""
    rename(files, folder, base_offset, layout.CLEANED, layout.SWAP)
    files.sync_dir(folder)


def discard(files: FileSystem, folder: str, base_offset: int) -> None:
    """Removes what an attempt that was given up has left. For a worker thread."""
    ready = _path(folder, base_offset, layout.LOG, layout.SWAP)
    if files.exists(ready):
        # In one step none of it is ready any more. A start after a crash amid the removals would else put what is left
        # of the new segment's indexes beside the old segment, or lack some of them beside the new one. As long as one
        # file says so, what is left goes.
        files.rename(ready, ready.removesuffix(layout.SWAP) + layout.CLEANED)
        files.sync_dir(folder)
    for state in (layout.SWAP, layout.CLEANED):
        for path in _paths(files, folder, base_offset, state):
            with suppress(FileNotFoundError):
                files.remove(path)


def _path(folder: str, base_offset: int, suffix: str, state: str) -> str:
    return f"{folder}/{layout.segment_name(base_offset, suffix)}{state}"


def _paths(files: FileSystem, folder: str, base_offset: int, state: str) -> list[str]:
    """Those that exist."""
    paths = (_path(folder, base_offset, suffix, state) for suffix in layout.SEGMENT_SUFFIXES)
    return [path for path in paths if files.exists(path)]
