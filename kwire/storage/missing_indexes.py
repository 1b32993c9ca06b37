"""The indexes of a segment, for who must not wait for the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.storage.cold_reads import Missing
from kwire.storage.segment_indexes import SegmentIndexes
from kwire.storage.transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from kwire.storage.segment import Segment


class MissingIndexes(Missing):
    """They are not in memory, or they are wrong."""

    def __init__(self, segment: Segment, *, rebuild: bool) -> None:
        """`rebuild`: from the batches' headers, not from the index files."""
        super().__init__(segment.file, 0, 0)
        self._segment = segment
        self._rebuild = rebuild
        self._version = segment.version
        self._loaded: tuple[SegmentIndexes, list[AbortedTransaction]] | None = None

    def warm(self) -> None:
        segment = self._segment
        indexes = segment.build_indexes(self._file) if self._rebuild else segment.load_indexes(self._file)
        self._loaded = indexes, segment.load_transactions()

    @property
    def stale(self) -> bool:
        return self._version != self._segment.version

    def done(self) -> None:
        # Others may have loaded them too, and have appended since.
        if not self.stale and self._loaded is not None and (self._rebuild or self._segment.indexes is None):
            self._segment.install(*self._loaded)
