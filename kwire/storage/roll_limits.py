"""Up to where a segment surely takes appends, so that most of them need no closer look (`rolling.segment_for`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kwire.storage.offset_index import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from kwire.config.topic import LogConfig
    from kwire.storage.segment import Segment


class RollLimits(NamedTuple):
    """Of one segment; all inclusive."""

    config: LogConfig | None
    """Under which they hold."""
    size: int
    """Of the segment with what is appended, in bytes."""
    offset: int
    timestamp: int
    """The newest one that is appended, ms."""


UNKNOWN = RollLimits(None, -1, -1, -1)


def limits(segment: Segment, config: LogConfig, wait_ms: int) -> RollLimits:
    """Those of a segment that has records and may be filled for so long. UNKNOWN where the clock says how long that
    has been, since the records do not."""
    first = segment.first_timestamp
    if first is None or first < 0:
        return UNKNOWN
    size = min(config.segment_bytes, segment.size_without_full_indexes(config.segment_index_bytes))
    return RollLimits(config, size, segment.base_offset + MAX_RELATIVE_OFFSET, first + wait_ms)
