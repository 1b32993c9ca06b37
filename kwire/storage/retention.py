"""Which segments a log no longer keeps: those before its start, those beyond its size, those too old.

A tiered log (remote.storage.enable) keeps here what local.retention.ms and local.retention.bytes say, and whatever is
not in remote storage yet; its start stays where it is. retention.ms and retention.bytes are of both places together.
Without a cleanup.policy a tiered log keeps here no more than with one: nothing is lost by that.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kwire.storage import truncating
from kwire.storage.segment import Segment
from kwire.storage.timestamps import load_newest

if TYPE_CHECKING:
    from kwire.storage.log import Log

logger = logging.getLogger(__name__)

_AS_A_WHOLE = -2
"""A local.retention.… of this value is what the retention.… is."""

_LOADED_AT_ONCE = 64
"""Segments whose newest timestamp one call of a worker thread reads."""


async def delete_old_segments(log: Log, now_ms: int) -> int:
    """See `Log.delete_old_segments`."""
    log.check_usable()
    deleted = await _delete(log, _before_start(log), "the log starts after it")
    if log.config.deleted or _copied(log):
        local = "local." if _copied(log) else ""
        deleted += await _delete(log, _beyond_size(log), f"{local}retention.bytes")
        deleted += await _delete(log, await _too_old(log, now_ms), f"{local}retention.ms")
    return deleted


def _copied(log: Log) -> bool:
    """Whether segments are copied to remote storage, so that they need not stay here for as long as there."""
    return log.tiered and not log.config.remote_log_copy_disable


def _retention_bytes(log: Log) -> int:
    config = log.config
    if _copied(log) and config.local_retention_bytes != _AS_A_WHOLE:
        return config.local_retention_bytes
    return config.retention_bytes


def _retention_ms(log: Log) -> int:
    config = log.config
    if _copied(log) and config.local_retention_ms != _AS_A_WHOLE:
        return config.local_retention_ms
    return config.retention_ms


def _before_start(log: Log) -> int:
    """How many of the first segments end at or before the log's start."""
    return max(0, log.segments.floor_number(log.log_start_offset))


def _beyond_size(log: Log) -> int:
    """How many of the first segments can go so that still retention.bytes are left."""
    most = _retention_bytes(log)
    if most < 0:
        return 0
    excess = log.size - most
    count = 0
    for segment in log.segments:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count


async def _too_old(log: Log, now_ms: int) -> int:
    """How many of the first segments have no record younger than retention.ms."""
    retention_ms = _retention_ms(log)
    oldest_kept = now_ms - retention_ms if retention_ms >= 0 else -1
    while True:
        count = 0
        for segment in log.segments:
            newest = segment.newest
            if newest is None:
                break
            try:
                if segment.newest_ms(newest) >= oldest_kept:
                    return count
            except OSError as error:
                raise log.failed("look for what is too old", error) from error
            count += 1
        else:
            return count
        await load_newest(log, list(log.segments)[count : count + _LOADED_AT_ONCE])


async def _delete(log: Log, count: int, reason: str) -> int:
    """Deletes the first `count` segments, as far as the high watermark has passed them."""
    segments = log.segments
    doomed: list[Segment] = []
    for number in range(count):
        empty_active = segments[number] is segments.active and not segments.active.size
        end_offset = segments.end_of(number, log.log_end_offset)
        if empty_active or end_offset > log.high_watermark:
            break
        if _copied(log) and end_offset > max(log.tiered_end_offset, log.log_start_offset):
            if segments[number] is segments.active:
                log.roll()  # so that it can be copied: it goes when it is in remote storage
            break
        doomed.append(segments[number])
    if not doomed:
        return 0
    if doomed[-1] is segments.active:
        log.roll()  # what is appended while this waits stays
    if log.tiered and _end(log, doomed) > log.recovery_point:
        # The copies are found by leader epochs. Where those began that are not in the file yet, the batches tell alone.
        version = log.segments.version
        await log.flush(_end(log, doomed))
        if version != log.segments.version:
            return 0  # the next check sees what is left to do
    deleted = 0
    try:
        # Nothing but the name of the first segment that stays may say which offset comes next. And a crash amid must
        # leave no gap: a segment that came back before one that did not would have recovery cut off what follows.
        if not await _names_are_on_disk(log):
            return 0  # the next check sees what is left to do
        logger.info("deleting %d segments of %s below offset %d: %s", len(doomed), log.name, _end(log, doomed), reason)
        if not _copied(log):
            log.advance_log_start(_end(log, doomed))
        for segment in doomed:
            if deleted and not await _names_are_on_disk(log):
                break
            truncating.remove_segments(log, [segment])
            deleted += 1
    except OSError as error:
        raise log.failed("deletion of segments", error) from error
    return deleted


async def _names_are_on_disk(log: Log) -> bool:
    """Syncs the folder where it has to be; whether the segments are still the same, and in it, after that."""
    folder, log_dir, version = log.dir, log.log_dir, log.segments.version
    if log.names_version > log.names_synced:
        try:
            await log.services.executor.run(log.services.files.sync_dir, folder)
        except OSError as error:
            if log.dir == folder or log.deleted:
                raise
            # The log was moved meanwhile: its old folder has another name, and the log dir where it is has not failed.
            if not isinstance(error, FileNotFoundError):
                log_dir.fail(f"deletion of segments of {log.name} failed", error)
            return False
    return log.segments.version == version


def _end(log: Log, doomed: list[Segment]) -> int:
    return log.segments.end_of(len(doomed) - 1, log.log_end_offset)
