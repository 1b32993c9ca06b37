"""Whether a segment takes an append, and up to where it surely takes them, so that most need no closer look.

`rolling.segment_for` goes by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kwire.storage.batch_walk import headers
from kwire.storage.offset_index import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from kwire.config.topic import LogConfig
    from kwire.ports.clock import Clock
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


UNKNOWN: Final = RollLimits(None, -1, -1, -1)


def limits(segment: Segment, config: LogConfig, wait_ms: int) -> RollLimits:
    """Those of a segment that has records and may be filled for so long. UNKNOWN where the clock says how long that
    has been, since the records do not."""
    first = segment.first_timestamp
    if first is None or first < 0:
        return UNKNOWN
    size = min(config.segment_bytes, _size_without_full_indexes(segment, config.segment_index_bytes))
    return RollLimits(config, size, segment.base_offset + MAX_RELATIVE_OFFSET, first + wait_ms)


def has_room(segment: Segment, size: int, last_offset: int, max_bytes: int, max_index_bytes: int) -> bool:
    """Whether `size` more bytes up to `last_offset` fit (segment.bytes, segment.index.bytes, width of an entry)."""
    return (
        segment.size + size <= max_bytes
        and last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET
        and (
            segment.size < _size_without_full_indexes(segment, max_index_bytes)
            or not segment.ready_indexes(may_block=True).is_full(max_index_bytes)
        )
    )


def waited_to_roll(segment: Segment, clock: Clock, newest_timestamp: int) -> int:
    """How long (ms) the segment has been filling, which segment.ms bounds.

    By the records' time, from the first append's to the one about to come; by the clock where records have none.
    """
    if segment.first_timestamp is None and segment.size:
        for _, header in headers(segment.file, 0, segment.size):
            segment.first_timestamp = header.max_timestamp
            break
    if segment.first_timestamp is not None and segment.first_timestamp >= 0:
        return newest_timestamp - segment.first_timestamp
    return clock.wall_ms() - segment.created_ms


def _size_without_full_indexes(segment: Segment, max_index_bytes: int) -> int:
    """As long as the segment is smaller (bytes), its indexes can't be full: entries lie more than index.interval.bytes
    apart."""
    return segment.index_interval * (max_index_bytes // 12 - 1)
