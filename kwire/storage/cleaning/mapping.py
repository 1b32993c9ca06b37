"""The first part of a cleaning: which record of each key of the dirty part is the latest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kwire.ports.files import FileSystem
from kwire.protocol.records.header import BatchHeader
from kwire.protocol.records.record import record_data, stored_limit
from kwire.protocol.records.skim import skim
from kwire.storage.cleaning.offset_map import OffsetMap
from kwire.storage.cleaning.source import Source
from kwire.storage.cleaning.transactions import CleanedTransactions


def map_offsets(
    files: FileSystem,
    sources: Sequence[Source],
    start_offset: int,
    offsets: OffsetMap,
    transactions: CleanedTransactions,
    window: int,
    limit: int,
) -> Iterator[int]:
    """Puts the keys from `start_offset` on into the map, until that is full; yields the bytes gone through.

    `transactions` knows the aborted ones, whose records count for nothing. `limit`: bytes that a batch may decompress
    to. Raises CorruptBatchError, OSError.
    """
    for source in sources:
        for header, batch in source.batches(files, window):
            if header.control:
                transactions.is_needless(header, batch)
            elif not transactions.is_aborted(header) and not _put(header, batch, offsets, limit):
                return
            if header.last_offset >= start_offset:
                offsets.latest_offset = header.last_offset
            yield header.size
        offsets.latest_offset = source.end_offset - 1  # the offsets up to the next segment have no records any more


def _put(header: BatchHeader, batch: memoryview, offsets: OffsetMap, limit: int) -> bool:
    """Whether all keys of the batch found a place."""
    if not header.count:
        return True
    data = record_data(batch, header, max(limit, stored_limit(header)))
    return offsets.put(header, skim(data, header.count))
