"""What of a log can be cleaned now, and whether it is worth it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from kwire.storage import layout
from kwire.storage.batch_walk import headers
from kwire.storage.log import Log
from kwire.storage.segment import Segment
from kwire.storage.timestamps import load_newest

logger = logging.getLogger(__name__)

_NO_LIMIT = 2**63 - 1


class Cleanable(NamedTuple):
    """The part of a log that a cleaning would go through."""

    log: Log
    version: int
    """Of the log when it was looked at: what is said here holds for no other."""
    first_dirty_offset: int
    end_offset: int
    """Where the first segment begins that must not be cleaned yet."""
    clean_bytes: int
    dirty_bytes: int
    overdue: bool
    """Whether something dirty is older than max.compaction.lag.ms."""

    @property
    def ratio(self) -> float:
        """The share of the part that is dirty."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    @property
    def due(self) -> bool:
        return self.ratio > self.log.config.min_cleanable_dirty_ratio or (self.overdue and self.dirty_bytes > 0)


async def look(log: Log, checkpoint: int | None, now_ms: int) -> Cleanable:
    """`checkpoint`: the offset up to which the log is clean, None where it never was. Raises KAFKA_STORAGE_ERROR."""
    version = log.version
    start = _first_dirty(log, checkpoint)
    overdue = await _overdue(log, start, now_ms)
    too_young = await _too_young(log, start, now_ms)
    segments = log.segments
    bounds = [log.last_stable_offset, segments.active.base_offset]
    if too_young is not None:
        bounds.append(too_young)
    number = segments.floor_number(min(bounds))
    end = segments[max(0, number)].base_offset
    dirty = [segment for segment in segments.from_offset(start) if segment.base_offset < end]
    clean_bytes = sum(segment.size for segment in segments if segment.base_offset < start)
    return Cleanable(log, version, start, end, clean_bytes, sum(segment.size for segment in dirty), overdue)


def _first_dirty(log: Log, checkpoint: int | None) -> int:
    start = log.log_start_offset
    if checkpoint is None or checkpoint < start:
        return start
    if checkpoint > log.log_end_offset:
        logger.warning(
            "%s ends at %d, before offset %d up to which it was cleaned: it is cleaned anew",
            log.name,
            log.log_end_offset,
            checkpoint,
        )
        return start
    return checkpoint


def _dirty(log: Log, start: int) -> list[Segment]:
    """The segments with what may be dirty, but for the active one."""
    return [segment for segment in log.segments.from_offset(start) if segment is not log.segments.active]


async def _too_young(log: Log, start: int, now_ms: int) -> int | None:
    """Where the first dirty segment begins that has a record younger than min.compaction.lag.ms."""
    lag = log.config.min_compaction_lag_ms
    if lag <= 0:
        return None
    dirty = _dirty(log, start)
    newest = await load_newest(log, dirty)
    for segment, latest in zip(dirty, newest, strict=True):
        try:
            newest_ms = segment.newest_ms(latest)
        except FileNotFoundError:  # removed meanwhile
            continue
        except OSError as error:
            raise log.failed("look for what is to be cleaned", error) from error
        if newest_ms > now_ms - lag:
            return segment.base_offset
    return None


async def _overdue(log: Log, start: int, now_ms: int) -> bool:
    lag = log.config.max_compaction_lag_ms
    if lag == _NO_LIMIT:
        return False
    dirty = _dirty(log, start)
    unknown = [segment for segment in dirty if segment.first_timestamp is None and segment.size]
    if unknown:
        try:
            found = await log.services.executor.run(_first_timestamps, unknown)
        except OSError as error:
            raise log.failed("look for what is to be cleaned", error) from error
        for segment, timestamp in zip(unknown, found, strict=True):
            segment.first_timestamp = timestamp
    known = [segment.first_timestamp or 0 for segment in dirty]
    return min((timestamp for timestamp in known if timestamp > 0), default=_NO_LIMIT) < now_ms - lag


def _first_timestamps(segments: Sequence[Segment]) -> list[int | None]:
    """The largest timestamp of each segment's first batch."""
    found: list[int | None] = []
    for segment in segments:
        try:
            file = segment.files.open(segment.path(layout.LOG))
        except FileNotFoundError:  # removed meanwhile
            found.append(None)
            continue
        found.append(next((header.max_timestamp for _, header in headers(file, 0, segment.size)), None))
    return found
