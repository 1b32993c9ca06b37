"""Bringing a log onto the disk: with flush.messages and flush.ms, after a roll, when it is closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from kwire.storage import checkpoints, layout

if TYPE_CHECKING:
    from kwire.ports.executor import Executor
    from kwire.ports.files import FileSystem
    from kwire.storage.log import Log
    from kwire.storage.log_dir import LogDir
    from kwire.storage.segment import Segment

_LOGS_PER_JOB = 32
"""Logs that one call of a worker thread closes."""

_JOBS_AT_ONCE = 2
"""More threads would only wait for each other: to write small files takes the interpreter, and the volume's journal."""

_FEW = 16
"""So many logs are synced faster one by one than by a sync of the whole volume."""


def flush_up_to(log: Log, offset: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """What brings a log up to `offset` onto the disk: for a worker thread, and for the event loop after that.

    Not two at once of one log (`GroupCommit` sees to that). What takes long, waiting for the disk, is the worker's.
    Raises OSError, as the first function does.
    """
    files, folder = log.services.files, log.dir
    offset = min(offset, log.log_end_offset)  # it may have been truncated since
    # One that was truncated is brought there even if nothing is left of it: else what was cut off may come back.
    segments = [segment for segment in _unflushed(log) if segment.base_offset < offset or segment.version]
    active = log.segments.active
    for segment in segments:
        segment.persist_indexes()
    opened = [segment.file for segment in segments]
    paths = [path for segment in segments if segment is not active for path in segment.index_paths()]
    epochs = log.epochs.entries() if log.epochs.dirty else None
    if epochs is not None:
        log.epochs.were_written()
    names_version = log.names_version
    folders: list[str] = []
    if names_version > log.names_synced:
        folders.append(folder)
    if not log.names_synced:  # the partition's folder may be new itself
        folders.append(log.log_dir.path)
    version = log.version

    def work() -> None:
        for file in opened:
            file.sync()
        _sync_each(files, paths)
        with suppress(FileNotFoundError):  # the partition was deleted meanwhile
            if epochs is not None:
                files.write_atomically(f"{folder}/{layout.LEADER_EPOCHS}", checkpoints.encode_epochs(epochs))
            for path in folders:
                files.sync_dir(path)

    def done() -> None:
        log.last_flush = log.services.clock.monotonic()
        log.names_synced = max(log.names_synced, names_version)
        if version == log.version:
            log.recovery_point = max(log.recovery_point, min(offset, _indexed(log, active)))

    return work, done


def _indexed(log: Log, active: Segment) -> int:
    """Up to where a flush that began when this was the active segment may bring the recovery point.

    If it was sealed meanwhile its indexes are not on the disk: the point stays in it, as `rolling.roll` left it.
    """
    segments = log.segments
    if active is segments.active:
        return log.log_end_offset
    number = segments.floor_number(active.base_offset)
    return segments.end_of(number, log.log_end_offset) - (1 if number >= 0 and segments[number] is active else 0)


def _unflushed(log: Log) -> list[Segment]:
    """The segments with what may not be on disk."""
    return log.segments.from_offset(log.recovery_point)


def _write_epochs(log: Log) -> None:
    """Writes the leader epochs without waiting for the disk: who closes the log does that for all files together."""
    files = log.services.files
    path = f"{log.dir}/{layout.LEADER_EPOCHS}"
    data = checkpoints.encode_epochs(log.epochs.entries())
    if log.epochs.written:
        files.write_atomically(path, data, sync=False)
    else:  # a crash that leaves half of it takes nothing away: as long as it says nothing, nothing was flushed
        files.write(path, data)
    log.epochs.were_written()


def _sync_each(files: FileSystem, paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):  # there never was one, or the partition or the segment was deleted meanwhile
            files.open(path).sync()


# Closing


async def close(log: Log) -> None:
    """See `Log.close`."""
    if log.log_dir.online and _touched(log):
        try:
            await log.services.executor.run(_complete_each, [log], True)
        except OSError as error:
            raise log.failed("close", error) from error
        log.recovery_point = log.log_end_offset
    log.forget_files()


async def close_all(logs: Sequence[Log], log_dir: LogDir, files: FileSystem, executor: Executor) -> None:
    """Closes all logs of a dir; a failure takes the dir offline.

    A few logs are synced one by one, more of them by one sync of the volume: that waits for what others write there,
    too, but only once.
    """
    touched = [log for log in logs if _touched(log)]
    few = len(touched) <= _FEW
    at_once = 1 if few else _LOGS_PER_JOB
    places = trio.Semaphore(_FEW if few else _JOBS_AT_ONCE)
    failures: list[OSError] = []

    async def run(work: Callable[..., None], *arguments: object) -> None:
        async with places:
            if not failures:
                try:
                    await executor.run(work, *arguments)
                except OSError as error:
                    failures.append(error)

    async with trio.open_nursery() as nursery:
        for start in range(0, len(touched), at_once):
            nursery.start_soon(run, _complete_each, touched[start : start + at_once], few)
    if not few:
        await run(files.sync_volume, log_dir.path)
    if failures:  # not before all workers are done with the logs
        log_dir.fail("close failed", failures[0])
        return
    for log in touched:
        log.recovery_point = log.log_end_offset
    for log in logs:
        log.forget_files()


def _complete_each(logs: Sequence[Log], sync: bool) -> None:
    for log in logs:
        _complete(log)
        if sync:
            _sync(log)


def _touched(log: Log) -> bool:
    """Whether a log has anything that must reach the disk when it is closed."""
    return log.changed or log.unflushed > 0 or log.epochs.dirty


def _complete(log: Log) -> None:
    """Writes what a log has in memory only: the leader epochs, the producers, the last entries of the indexes.

    For a worker thread: nobody uses the log any more. Raises OSError. What is not written would say nothing: epochs
    without a record, and a snapshot without producers where there is none that it would replace.
    """
    if _with_records(log, log.epochs.entries()) != _with_records(log, log.epochs.written):
        _write_epochs(log)
    active = log.segments.active
    for segment in _unflushed(log):
        if segment is not active:
            segment.persist_indexes()
    active.seal()
    if log.producer_state.entries or log.producer_state.snapshots:
        log.producer_state.take_snapshot()


def _with_records(log: Log, epochs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The entries that a start does not drop."""
    return [(epoch, start) for epoch, start in epochs if start < log.log_end_offset]


def _sync(log: Log) -> None:
    """Waits until what is written of a log is on disk. For a worker thread. Raises OSError."""
    files = log.services.files
    paths = [f"{log.dir}/{layout.LEADER_EPOCHS}"]
    for segment in _unflushed(log):
        paths += [segment.path(layout.LOG), *segment.index_paths()]
    if log.producer_state.snapshots:
        paths.append(log.producer_state.snapshot_path(log.producer_state.snapshots[-1]))
    _sync_each(files, paths)
    files.sync_dir(log.dir)
