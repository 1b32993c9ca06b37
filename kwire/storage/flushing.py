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

    Everything is written here and now, so that of two flushes under way neither writes what is older; what takes long,
    waiting for the disk, is the worker's. Without `sync` it does not wait, and the second function is for after a sync
    of the volume. Raises OSError, as the first function does.
    """
    files = log.services.files
    epochs_path = f"{log.dir}/{layout.LEADER_EPOCHS}"
    if log.epochs.dirty:  # recovery reads them again only from the recovery point on
        files.write_atomically(epochs_path, checkpoints.encode_epochs(log.epochs.entries()), sync=False)
        log.epochs.dirty = False
        log.names_version += 1
    segments = [segment for segment in log.segments.from_offset(log.recovery_point) if segment.base_offset < offset]
    for segment in segments:
        segment.persist_indexes()
    opened = [segment.file for segment in segments]
    paths = [
        segment.path(suffix)
        for segment in segments
        if segment is not log.segments.active
        for suffix in (layout.OFFSET_INDEX, layout.TIME_INDEX)
    ]
    names_version = log.names_version
    folder = log.dir if names_version > log.names_synced else None
    if folder is not None:
        paths.append(epochs_path)
    version = log.version

    def work() -> None:
        if not sync:
            return
        for file in opened:
            file.sync()
        for path in paths:
            with suppress(FileNotFoundError):  # the partition or the segment was deleted meanwhile
                files.open(path).sync()
        if folder is not None:
            with suppress(FileNotFoundError):
                files.sync_dir(folder)

    def done() -> None:
        log.last_flush_ms = log.services.clock.wall_ms()
        log.names_synced = max(log.names_synced, names_version)
        if version == log.version:
            log.recovery_point = max(log.recovery_point, offset)

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
        raise log.failed("close", error) from error
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
