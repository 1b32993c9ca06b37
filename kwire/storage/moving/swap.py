"""The moment in which a copy takes the place of the log, and what is to be done after it."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kwire.ports.files import FileSystem
from kwire.storage import layout
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir
from kwire.storage.moving.future import FutureLog

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)

TAIL_BYTES = 128 * 1024
"""What at most is left to be copied on the event loop: less than a tenth of a millisecond."""


class Left(NamedTuple):
    """What was left behind."""

    log_dir: LogDir
    folder: str


def ready(future: FutureLog) -> bool:
    """Whether nothing is missing but the last bytes of the active segment."""
    log = future.source
    active = log.segments.active
    for segment in log.segments:
        copy = future.copies.get(segment.base_offset)
        if copy is None or copy.source is not segment or copy.void:
            return False
        if segment is active:
            if segment.size - copy.size > TAIL_BYTES:
                return False
        elif not copy.complete:
            return False
    gone = len(future.copies) > len(log.segments)
    return (
        not gone
        and not active.append_waits
        and future.settled
        and future.snapshots.issuperset(log.producer_state.snapshots)
    )


def swap_in(manager: LogManager, future: FutureLog) -> Left:
    """Puts a copy that is ready in the place of its log. On the event loop, so that nobody sees half of it.

    Whoever still sends from an old file keeps it. Raises KAFKA_STORAGE_ERROR where one of the dirs fails: the log is
    where it was, or the next start finds it.
    """
    log, target = future.source, future.log_dir
    files = manager.services.files
    unique = manager.services.randomness.uuid()
    left = Left(log.log_dir, log.log_dir.file(layout.renamed_dir_name(*log.key, unique, layout.DELETE_DIR)))
    folder = target.file(layout.partition_dir_name(*log.key))
    try:
        tail = _tail(future)
    except OSError as error:
        raise log.failed("move", error) from error
    try:
        _write_tail(files, future, tail)
    except OSError as error:
        raise target.fail(f"move of {log.name} failed", error) from error
    try:
        files.rename(log.dir, left.folder)
    except OSError as error:
        raise log.failed("move", error) from error
    try:
        files.rename(future.dir, folder)
    except OSError as error:
        with suppress(OSError):  # otherwise the next start finds the copy alone, and that it is complete
            files.rename(left.folder, log.dir)
        raise target.fail(f"move of {log.name} failed", error) from error
    _go_on_in(future, folder)
    del manager.moves.futures[log.key]
    return left


def _tail(future: FutureLog) -> bytes:
    segment = future.source.segments.active
    copied = future.copies[segment.base_offset].size
    return segment.file.pread(segment.size - copied, copied) if segment.size > copied else b""


def _write_tail(files: FileSystem, future: FutureLog, tail: bytes) -> None:
    log = future.source
    active = log.segments.active
    copy = future.copies[active.base_offset]
    if copy.file.size() > copy.size:  # an interrupted move left more
        copy.file.truncate(copy.size)
    if tail:
        copy.file.pwrite([tail], copy.size)
    if active.has_transactions:
        data = b"".join(transaction.encode() for transaction in active.transactions())
        files.write(future.path(active.base_offset, layout.TRANSACTION_INDEX), data)


def _go_on_in(future: FutureLog, folder: str) -> None:
    """The log is what it was, with the same bytes at the same places, but for the folder.

    What is under way on the old files (a flush, a look-up, a cleaning) must not be taken over, or is done again.
    """
    log = future.source
    log.version += 1
    log.names_version += 1
    log.segments.version += 1
    log.log_dir = future.log_dir
    log.dir = log.producer_state.directory = folder
    log.changed = True
    log.recovery_point = min(future.recovery_point, log.log_end_offset)
    log.epochs.file_has(future.epochs)
    for segment in log.segments:
        segment.forget_open()
        segment.version += 1
        segment.dir = folder
    active = log.segments.active
    if active.indexes is not None:
        active.indexes.rewrite()


async def finish(manager: LogManager, log: Log, left: Left) -> None:
    """Makes the swap last, and takes away what it left: the old folder, and what the old dir's checkpoints say."""
    key, target = log.key, log.log_dir
    cleaned = left.log_dir.checkpoint(layout.CLEANER_OFFSETS).get(key)
    for log_dir in (left.log_dir, target):
        await manager.tolerantly(log_dir, manager.services.files.sync_dir, log_dir.path)
    if cleaned is not None:
        await manager.upkeep.note_cleaned(target, key, cleaned)
    await manager.upkeep.forget(left.log_dir, {key})
    manager.remove_later(left.log_dir, left.folder, log.config.file_delete_delay_ms)
