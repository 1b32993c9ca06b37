"""The moment in which a copy takes the place of the log, and what is to be done after it.

    t-0                    t-0.ID-future        until now
    t-0.ID-delete          t-0.ID-future        the log goes on in the copy
    t-0.ID-delete          t-0                  once the first name is on the disk
                           t-0                  file.delete.delay.ms later

At no moment, and after no loss of power, are there two folders with the partition's name. Where a start finds none, the
two ids say that this copy was about to be the log.
"""

from __future__ import annotations

import logging
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
    left = Left(log.log_dir, log.log_dir.file(layout.left_behind_name(future.dir.rpartition("/")[2])))
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
    _go_on_in(future)
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


def _go_on_in(future: FutureLog) -> None:
    """The log is what it was, with the same bytes at the same places, but for the folder."""
    log = future.source
    log.log_dir.high_watermarks.note(log.key)  # it goes from there
    log.log_dir = future.log_dir
    log.note_high_watermark()  # noted or not, since that was in the other dir
    log.changed = True
    log.recovery_point = min(future.recovery_point, log.log_end_offset)
    log.epochs.file_has(future.epochs)
    _relocate(log, future.dir)
    active = log.segments.active
    active.forget_reserve()
    if active.indexes is not None:
        active.indexes.rewrite()


def _relocate(log: Log, folder: str) -> None:
    """What is under way on the files of before (a flush, a look-up, a cleaning) must not be taken over, or is done
    again."""
    log.version += 1
    log.names_version += 1
    log.names_synced = 0
    log.segments.version += 1
    log.dir = log.producer_state.directory = folder
    for segment in log.segments:
        segment.forget_open()
        segment.version += 1
        segment.dir = folder


async def finish(manager: LogManager, future: FutureLog, left: Left) -> None:
    """Makes the swap last, and takes away what it left: the old folder, and what the old dir's checkpoints say.

    Raises KAFKA_STORAGE_ERROR where the log's dir fails: what was left stays then, and the next start goes on.
    """
    log, target, key = future.source, future.log_dir, future.key
    files = manager.services.files
    cleaned = left.log_dir.checkpoint(layout.CLEANER_OFFSETS).get(key)
    await manager.tolerantly(left.log_dir, files.sync_dir, left.log_dir.path)
    target.check_online()
    if not log.deleted:
        folder = target.file(layout.partition_dir_name(*key))
        try:
            files.rename(future.dir, folder)
        except OSError as error:
            raise target.fail(f"move of {log.name} failed", error) from error
        _relocate(log, folder)
    await manager.guarded(target, files.sync_dir, target.path)
    if cleaned is not None:
        await manager.upkeep.note_cleaned(target, key, cleaned)
    await manager.upkeep.forget(left.log_dir, {key})
    manager.remove_later(left.log_dir, left.folder, log.config.file_delete_delay_ms)
