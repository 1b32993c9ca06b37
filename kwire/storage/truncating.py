"""Taking back the end of a log, and removing segments."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kwire.storage import layout, rolling
from kwire.storage.producer_replay import replay
from kwire.storage.segment import Segment

if TYPE_CHECKING:
    from kwire.storage.log import Log

logger = logging.getLogger(__name__)


def truncate_to(log: Log, offset: int) -> bool:
    """See `Log.truncate_to`."""
    if offset < 0:
        raise ValueError(f"truncation to offset {offset}")
    log.check_usable()
    if offset >= log.log_end_offset:
        # An epoch may have been assigned at the end without a record: the new leader's history decides about it.
        log.epochs.truncate_from_end(log.log_end_offset)
        return False
    logger.info("truncating %s from %d to %d", log.name, log.log_end_offset, offset)
    if log.segments.first.base_offset > offset:
        truncate_fully_and_start_at(log, offset, min(offset, log.log_start_offset) if log.tiered else None)
        return True
    try:
        log.version += 1
        log.log_dir.forget_clean_shutdown()
        for segment in log.segments.from_base(offset + 1)[::-1]:
            # A crash amid that must leave no gap: one that came back would lie behind what is cut off now.
            remove_segments(log, [segment])
            log.services.files.sync_dir(log.dir)
        log.names_version += 1  # snapshots of the producers go as well
        log.segments.active.truncate_to(offset, log.services.clock.wall_ms())
        _end_at(log, offset)
        log.epochs.truncate_from_end(offset)
        log.log_start_offset = min(offset, log.log_start_offset)
        replay(log.producer_state, log.segments, log.log_start_offset, offset, log.services.clock.wall_ms())
        log.set_high_watermark(log.high_watermark)  # what was replayed may have been committed long ago
    except OSError as error:
        raise log.failed("truncation", error) from error
    return True


def truncate_fully_and_start_at(log: Log, offset: int, log_start_offset: int | None) -> None:
    """See `Log.truncate_fully_and_start_at`."""
    log.check_usable()
    logger.info("truncating %s fully, it starts again at %d", log.name, offset)
    try:
        log.version += 1
        log.log_dir.forget_clean_shutdown()
        old = list(log.segments)
        remove_files(log, old[::-1])
        log.segments.remove(old)
        log.segments.add(rolling.new_segment(log, offset))
    except OSError as error:
        raise log.failed("truncation", error) from error
    _end_at(log, offset)
    log.epochs.clear()
    log.producer_state.truncate_fully_and_start_at(offset)
    log.log_start_offset = offset if log_start_offset is None else log_start_offset
    log.set_high_watermark(offset)


def _end_at(log: Log, offset: int) -> None:
    log.changed = True
    log.log_end_offset = offset
    log.set_high_watermark(min(log.high_watermark, offset))
    # What is appended now must not pass for flushed, or for clean, because of what was here before.
    if log.recovery_point > offset:
        log.recovery_point = offset
        log.to_lower[layout.RECOVERY_POINTS] = offset
    cleaned = log.log_dir.checkpoint(layout.CLEANER_OFFSETS).get(log.key, 0)
    if log.config.compacted or cleaned > offset:
        log.to_lower[layout.CLEANER_OFFSETS] = offset
    if log.to_lower:
        log.services.chores.soon(log.log_dir, partial(lower_checkpoints, log))


async def lower_checkpoints(log: Log) -> None:
    """Waits until the checkpoints say no more of the log than a truncation has left of it. Raises OSError."""
    async with log.log_dir.writing:
        while log.to_lower:
            name, offset = next(iter(log.to_lower.items()))
            await log.services.executor.run(log.log_dir.lower_checkpoint, name, log.key, offset)
            if log.to_lower.get(name) == offset:  # else it was truncated once more meanwhile
                del log.to_lower[name]


def remove_segments(log: Log, segments: list[Segment]) -> None:
    """Takes segments out of the log and their files out of sight; at least one segment must stay."""
    log.segments.remove(segments)
    remove_files(log, segments)


def remove_files(
    log: Log, segments: Iterable[Segment], *, snapshot_stays: int | None = None, replaced: bool = False
) -> None:
    """Renames the segments' files to `.deleted`; they are removed after file.delete.delay.ms.

    So are the snapshots of the producers where they begin, but for that at the offset `snapshot_stays`. A slice of
    such a file that waits to be sent keeps its descriptor and is not disturbed. `replaced`: another segment has what
    was in them, and they may go earlier where room is short. Raises OSError.
    """
    files = log.services.files
    renamed = []
    log.names_version += 1
    for segment in segments:
        segment.forget_open()
        segment.version += 1
        for path in segment.existing_files():
            aside = path + layout.DELETED
            if files.exists(aside):  # of a cleaning before this one; to replace it would free a gigabyte here and now
                aside = layout.deleted_again(path, log.names_version)
            files.rename(path, aside)
            renamed.append(aside)
        if segment.base_offset != snapshot_stays:
            snapshot = log.producer_state.mark_snapshot_deleted(segment.base_offset)
            if snapshot is not None:
                renamed.append(snapshot)

    def remove() -> None:
        for path in renamed:
            with suppress(FileNotFoundError):  # the whole partition was deleted meanwhile
                files.remove(path)

    log.services.chores.later(log.config.file_delete_delay_ms, log.log_dir, remove, removes=True, makes_room=replaced)
