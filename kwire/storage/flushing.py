"""Bringing a log onto the disk: with flush.messages and flush.ms, after a roll, when it is closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.storage import checkpoints, layout

if TYPE_CHECKING:
    from kwire.ports.executor import Executor
    from kwire.ports.files import FileSystem
    from kwire.storage.log import Log
    from kwire.storage.log_dir import LogDir

_LOGS_PER_JOB = 32
"""Logs that one call of a worker thread closes: as many have an open file at a time."""

_FEW = 16
"""So many logs are synced faster one by one than by a sync of the whole volume."""


def flush_up_to(log: Log, offset: int, *, sync: bool = True) -> tuple[Callable[[], None], Callable[[], None]]:
    """What brings a log up to `offset` onto the disk: for a worker thread, and for the event loop after that.

    Without `sync` the files are written but not waited for; the second function is then for after a sync of the volume.
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
        if sync:
            for file in opened:
                file.sync()
        with suppress(FileNotFoundError):  # the partition or the segment was deleted meanwhile
            for path in indexes if sync else ():
                files.open(path).sync()
            if epochs is not None:
                files.write_atomically(f"{log.dir}/{layout.LEADER_EPOCHS}", epochs, sync=sync)
            if names_changed and sync:
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


def closing(log: Log, *, sync: bool = True) -> tuple[Callable[[], None], Callable[[], None]]:
    """As `flush_up_to` the log's end, with a snapshot of the producers and the active segment's indexes completed."""
    if not (log.changed or log.unflushed or log.epochs.dirty):
        return _nothing, log.forget_files
    flush, flushed = flush_up_to(log, log.log_end_offset, sync=sync)
    producers, active = log.producer_state, log.segments.active
    file = active.file

    def work() -> None:
        flush()
        producers.take_snapshot(sync=False)
        active.seal(file)

    def done() -> None:
        flushed()
        log.forget_files()

    return work, done


def _nothing() -> None:
    """What there is to do for a log that was not touched since it was loaded."""


async def close(log: Log) -> None:
    """See `Log.close`."""
    if not log.log_dir.online:
        log.forget_files()
        return
    try:
        work, done = closing(log)
        await log.services.executor.run(work)
    except OSError as error:
        raise log.log_dir.fail(f"close of {log.name} failed", error) from error
    done()


async def close_all(logs: Sequence[Log], log_dir: LogDir, files: FileSystem, executor: Executor) -> None:
    """Closes all logs of a dir; a failure takes the dir offline.

    A few logs are synced one by one, more of them by one sync of the volume: that waits for what others write there,
    too, but only once.
    """
    few = sum(log.changed or log.unflushed > 0 for log in logs) <= _FEW
    finished = []
    try:
        for start in range(0, len(logs), _LOGS_PER_JOB):
            works = []
            for log in logs[start : start + _LOGS_PER_JOB]:
                work, done = closing(log, sync=few)
                works.append(work)
                finished.append(done)
            await executor.run(_do_each, works)
        if not few:
            await executor.run(files.sync_volume, log_dir.path)
    except OSError as error:
        log_dir.fail("close failed", error)
        return
    for done in finished:
        done()


def _do_each(works: Sequence[Callable[[], None]]) -> None:
    for work in works:
        work()
