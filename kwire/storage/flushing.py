"""Bringing a log onto the disk: with flush.messages and flush.ms, after a roll, when it is closed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.ports.files import File
from kwire.storage import checkpoints, layout

if TYPE_CHECKING:
    from kwire.storage.log import Log


def flush_up_to(log: Log, offset: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """What brings a log up to `offset` onto the disk: for a worker thread, and for the event loop after that.

    The leader epochs go before the recovery point moves: of what lies before that no recovery reads them again. Raises
    OSError, as the first of the two functions does.
    """
    files = log.services.files
    segments = [segment for segment in log.segments.from_offset(log.recovery_point) if segment.base_offset < offset]
    for segment in segments:
        segment.persist_indexes()
    opened = [segment.file for segment in segments]
    indexes = [
        segment.path(suffix)
        for segment in segments
        if segment is not log.segments.active
        for suffix in (layout.OFFSET_INDEX, layout.TIME_INDEX)
    ]
    epochs = checkpoints.encode_epochs(log.epochs.entries()) if log.epochs.dirty else None
    names_changed = log.names_changed
    version = log.version
    active = log.segments.active

    def work() -> None:
        for file in opened:
            file.sync()
        with suppress(FileNotFoundError):  # the partition or the segment was deleted meanwhile
            for path in indexes:
                files.open(path).sync()
            if epochs is not None:
                files.write_atomically(f"{log.dir}/{layout.LEADER_EPOCHS}", epochs)
            if names_changed:
                files.sync_dir(log.dir)

    def done() -> None:
        log.last_flush_ms = log.services.clock.wall_ms()
        if version == log.version:
            log.recovery_point = max(log.recovery_point, offset)
        if epochs == checkpoints.encode_epochs(log.epochs.entries()):
            log.epochs.dirty = False
        if active is log.segments.active:
            log.names_changed = False

    return work, done


async def close(log: Log) -> None:
    """See `Log.close`."""
    if log.log_dir.online:
        if log.unflushed or log.epochs.dirty:
            await log.flush()
        try:
            await log.services.executor.run(_complete_files, log, log.segments.active.file)
        except OSError as error:
            raise log.log_dir.fail(f"close of {log.name} failed", error) from error
    log.forget_files()


def _complete_files(log: Log, active: File) -> None:
    log.producer_state.take_snapshot(sync=False)
    log.segments.active.seal(active)
