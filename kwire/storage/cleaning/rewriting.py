"""The second part of a cleaning: a group of segments is written anew, as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kwire.ports.files import FileSystem
from kwire.protocol.records.header import read_header
from kwire.storage.cleaning.batch_filter import BatchFilter
from kwire.storage.cleaning.cleaned import CleanedFiles
from kwire.storage.cleaning.source import RECORDS_PER_STEP, Source
from kwire.storage.cleaning.transactions import CleanedTransactions


def rewrite(
    files: FileSystem,
    sources: Sequence[Source],
    batches: BatchFilter,
    transactions: CleanedTransactions,
    cleaned: CleanedFiles,
    window: int,
) -> Iterator[tuple[int, int]]:
    """Writes what stays of the sources; yields (records, bytes) gone through, both read and written.

    For a worker thread, a piece at a time. Raises CorruptBatchError, OSError.
    """
    for source in sources:
        for header, batch in source.batches(files, window):
            kept = yield from batches.filter(header, batch)
            if kept is None:
                yield header.count % RECORDS_PER_STEP, header.size
                continue
            written = header if kept is batch else read_header(kept)
            cleaned.append(written, kept)
            yield header.count % RECORDS_PER_STEP, header.size + written.size
    cleaned.transactions += transactions.kept
    transactions.kept.clear()
    cleaned.complete()
    yield 0, 0
