"""Which segments are written anew as one, so that segments do not shrink with each cleaning."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.config.topic import LogConfig
from kwire.ports.files import FileSystem
from kwire.storage import layout
from kwire.storage.cleaning.source import Source
from kwire.storage.offset_index import MAX_RELATIVE_OFFSET


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


def _sizes(files: FileSystem, source: Source) -> tuple[int, ...]:
    """Bytes of the log, the offset index and the time index."""
    paths = source.path(layout.OFFSET_INDEX), source.path(layout.TIME_INDEX)
    return (source.size, *(files.file_size(path) if files.exists(path) else 0 for path in paths))
