"""Which segments are written anew as one, so that segments do not shrink with each cleaning; what that takes."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.config.topic import LogConfig
from kwire.ports.files import FileSystem
from kwire.protocol.records.header import HEADER_SIZE
from kwire.storage import layout
from kwire.storage.cleaning.source import Source
from kwire.storage.offset_index import MAX_RELATIVE_OFFSET

_INDEX_ENTRIES_BYTES = 8 + 12
"""Of the offset and the time index together."""
_BLOCKS_BYTES = len(layout.SEGMENT_SUFFIXES) * 4096
"""What files take on a disk beyond what is in them."""


def group(files: FileSystem, sources: Sequence[Source], config: LogConfig) -> list[list[Source]]:
    """Neighbours that fit together into segment.bytes, segment.index.bytes and an index's range of offsets.

    For a worker thread. Raises OSError.
    """
    groups: list[list[Source]] = []
    limits = config.segment_bytes, config.segment_index_bytes, config.segment_index_bytes
    sizes: tuple[int, ...] = (0, 0, 0)
    for source in sources:
        own = _sizes(files, source)
        together = tuple(map(sum, zip(sizes, own, strict=True)))
        if groups and all(size <= limit for size, limit in zip(together, limits, strict=True)):
            first = groups[-1][0].base_offset
            if not source.size or source.end_offset - 1 - first <= MAX_RELATIVE_OFFSET:
                groups[-1].append(source)
                sizes = together
                continue
        groups.append([source])
        sizes = own
    return groups


def most_bytes(files: FileSystem, sources: Sequence[Source], config: LogConfig) -> int:
    """What the segment that the sources become can take, but for batches that grow because their times are written
    otherwise. For a worker thread. Raises OSError.
    """
    size = sum(source.size for source in sources)
    entries = size // max(config.index_interval_bytes, HEADER_SIZE) + 2
    paths = (source.path(layout.TRANSACTION_INDEX) for source in sources)
    transactions = sum(files.file_size(path) for path in paths if files.exists(path))
    return size + entries * _INDEX_ENTRIES_BYTES + transactions + _BLOCKS_BYTES


def _sizes(files: FileSystem, source: Source) -> tuple[int, ...]:
    """Bytes of the log, the offset index and the time index."""
    paths = source.path(layout.OFFSET_INDEX), source.path(layout.TIME_INDEX)
    return (source.size, *(files.file_size(path) if files.exists(path) else 0 for path in paths))
