"""When a log begins a new segment: size, index, age (segment.bytes, segment.index.bytes, segment.ms).

A compacted log also when its oldest record may not wait longer for a cleaning (max.compaction.lag.ms)."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kwire.protocol.errors import KafkaError
from kwire.storage.roll_limits import has_room, limits, waited_to_roll
from kwire.storage.segment import Segment

if TYPE_CHECKING:
    from kwire.storage.log import Log


def segment_for(log: Log, size: int, first_offset: int, last_offset: int, newest_timestamp: int) -> Segment:
    """The segment that takes an append of `size` bytes: the active one, or a new one where that is full or due.

    Raises OSError.
    """
    active = log.segments.active
    config = log.config
    known, most_bytes, most_offset, most_timestamp = active.roll_limits
    if (
        known is config
        and active.size + size <= most_bytes
        and last_offset <= most_offset
        and newest_timestamp <= most_timestamp
    ):
        return active
    if has_room(active, size, last_offset, config.segment_bytes, config.segment_index_bytes):
        if not active.size:
            return active
        wait_ms = config.roll_ms - active.roll_jitter_ms
        if waited_to_roll(active, log.services.clock, newest_timestamp) <= wait_ms:
            active.roll_limits = limits(active, config, wait_ms)
            return active
    elif not active.size and first_offset == active.base_offset:
        return active
    return roll(log, first_offset)


def roll(log: Log, base_offset: int) -> Segment:
    """Seals the active segment and begins one at `base_offset`; the sealed one is flushed later. Raises OSError."""
    log.segments.active.seal()
    segment = new_segment(log, base_offset)
    log.segments.add(segment)
    log.producer_state.end_offset = base_offset
    log.producer_state.take_snapshot()
    # Its indexes are not on disk before that flush is done, and only a segment that is recovered gets new ones.
    log.recovery_point = min(log.recovery_point, base_offset - 1)
    log.services.chores.soon(log.log_dir, partial(_flush_sealed, log, base_offset))
    return segment


async def _flush_sealed(log: Log, end_offset: int) -> None:
    with suppress(KafkaError):  # its log dir tells of it
        await log.flush(end_offset)


def new_segment(log: Log, base_offset: int) -> Segment:
    """Creates the files of an empty segment; the caller adds it. Raises OSError."""
    config = log.config
    log.names_version += 1
    return Segment.create(
        log.services.files,
        log.services.open_files,
        log.dir,
        base_offset,
        created_ms=log.services.clock.wall_ms(),
        index_interval=config.index_interval_bytes,
        roll_jitter_ms=jitter(log),
        preallocate=config.segment_bytes if config.preallocate else 0,
    )


def jitter(log: Log) -> int:
    """What is taken off segment.ms for one segment: at random, less than segment.jitter.ms."""
    most = min(log.config.segment_jitter_ms, log.config.roll_ms)
    return log.services.randomness.below(most) if most > 0 else 0
