"""What a cleaning does apart from the log: it reads segments and writes others, in a worker.

Nothing here knows the log, so that it can go on in another process; what it is told, and what it tells, is pickled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kwire.ports.files import FileSystem
from kwire.storage.cleaning.batch_filter import BatchFilter, LastBatch
from kwire.storage.cleaning.cleaned import CleanedFiles, CleanedSegment
from kwire.storage.cleaning.mapping import map_offsets
from kwire.storage.cleaning.offset_map import OffsetMap
from kwire.storage.cleaning.rewriting import rewrite
from kwire.storage.cleaning.source import Source
from kwire.storage.cleaning.transactions import CleanedTransactions
from kwire.storage.transaction_index import AbortedTransaction, decode_transactions, overlapping


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """What one cleaner may use. All are bytes, but the factor."""

    map_bytes: int
    load_factor: float
    buffer_bytes: int
    """To read at once, and likewise to write."""
    piece_bytes: int = 1 << 20
    """To read and write before it is looked whether to go on."""


@dataclass(frozen=True, slots=True)
class ToRead:
    """Segments that a part of a cleaning goes through."""

    sources: Sequence[Source]
    transaction_indexes: Sequence[tuple[str, int]]
    """(path, base offset) of those that may tell of aborted records in the sources, in order."""
    limit: int
    """Bytes that a batch may decompress to."""


class Piece(NamedTuple):
    """What a piece of work came to."""

    more: bool
    """Whether there is more to do of what was begun."""
    size: int
    """Bytes read and written."""
    written: int
    """Bytes of the segment's .log that is being written, with those of the pieces before."""


class CleaningWork:
    """The work of one cleaning after the other. A part is begun, and then done piece by piece.

    Everything may raise OSError, and CorruptBatchError or CorruptIndex where the segments are damaged.
    """

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self.forget()

    def forget(self) -> None:
        """Gives back the memory of a cleaning that has ended, however it did."""
        self._offsets: OffsetMap | None = None
        self._transactions: CleanedTransactions | None = None
        self._writing: CleanedFiles | None = None
        self._cleaned: CleanedSegment | None = None
        self._steps: Iterator[int] = iter(())

    def begin_mapping(
        self, to_read: ToRead, start_offset: int, max_keys: int, secret: bytes, settings: CleanerSettings
    ) -> None:
        """The first part: the keys from `start_offset` on, of which there are at most `max_keys`."""
        self._settings = settings
        self._transactions = CleanedTransactions()
        self._offsets = OffsetMap(settings.map_bytes, max_keys, settings.load_factor, secret, start_offset)
        transactions = CleanedTransactions()
        transactions.add(self._aborted(to_read))
        self._steps = map_offsets(
            self._files,
            to_read.sources,
            start_offset,
            self._offsets,
            transactions,
            settings.buffer_bytes,
            to_read.limit,
        )

    def begin_rewriting(
        self,
        to_read: ToRead,
        producers: Mapping[int, LastBatch],
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
        index_interval: int,
    ) -> None:
        """The second part, for those segments that become one. `end_offset`: where the cleaning ends (exclusive)."""
        assert self._offsets is not None
        assert self._transactions is not None
        self._transactions.add(self._aborted(to_read))
        batches = BatchFilter(
            self._offsets, self._transactions, producers, end_offset, now_ms, delete_retention_ms, to_read.limit
        )
        first = to_read.sources[0]
        self._writing = CleanedFiles(
            self._files, first.folder, first.base_offset, index_interval, self._settings.buffer_bytes
        )
        self._steps = self._rewrite(to_read.sources, batches, self._writing)

    def _rewrite(self, sources: Sequence[Source], batches: BatchFilter, cleaned: CleanedFiles) -> Iterator[int]:
        assert self._transactions is not None
        yield from rewrite(self._files, sources, batches, cleaned, self._settings.buffer_bytes)
        self._cleaned = cleaned.complete(self._transactions.take_kept())

    def piece(self) -> Piece:
        """Does a piece of what was begun."""
        size, more = 0, False
        for step in self._steps:
            size += step
            if size >= self._settings.piece_bytes:
                more = True
                break
        return Piece(more, size, self._writing.written if self._writing else 0)

    def mapped(self) -> int:
        """Up to which offset (inclusive) the map knows all keys."""
        assert self._offsets is not None
        return self._offsets.latest_offset

    def cleaned(self) -> CleanedSegment:
        """What became of the segments."""
        assert self._cleaned is not None
        return self._cleaned

    def _aborted(self, to_read: ToRead) -> list[AbortedTransaction]:
        """The aborted transactions that records in the sources may belong to."""
        found: list[AbortedTransaction] = []
        for path, base_offset in to_read.transaction_indexes:
            start, end = to_read.sources[0].base_offset, to_read.sources[-1].end_offset
            more, complete = overlapping(decode_transactions(self._files.read(path), base_offset), start, end)
            found += more
            if complete:
                break
        return found
