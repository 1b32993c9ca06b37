"""The second part of a cleaning: a group of segments is written anew, as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kwire.ports.files import FileSystem
from kwire.protocol.records.header import read_header
from kwire.storage.cleaning.batch_filter import BatchFilter
from kwire.storage.cleaning.cleaned import CleanedFiles
from kwire.storage.cleaning.source import Source


def rewrite(
    files: FileSystem, sources: Sequence[Source], batches: BatchFilter, cleaned: CleanedFiles, window: int
) -> Iterator[int]:
    """Writes what stays of the sources; yields the bytes read and written. Raises CorruptBatchError, OSError."""
    for source in sources:
        for header, batch in source.batches(files, window):
            kept = batches.filter(header, batch)
            if kept is None:
                yield header.size
                continue
            written = header if kept is batch else read_header(kept)
            cleaned.append(written, kept)
            yield header.size + written.size
