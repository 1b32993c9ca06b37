"""Taking logs out of sight: of partitions that were deleted (`-delete`), or that nobody knows any more (`-stray`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import trio

from kwire.ports.files import FileSystem
from kwire.ports.turns import Turn
from kwire.protocol.errors import KafkaError
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.log import Log

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager


async def take_away(manager: LogManager, partitions: Iterable[TopicPartition], suffix: str) -> int:
    """Renames the logs' folders in the dirs that are online; those of deleted partitions are removed later.

    Each dir's checkpoints forget all of them at once, and do so first: what a checkpoint says of a name would be
    taken for true of the next log of that name. Returns how many there were. Raises KAFKA_STORAGE_ERROR.
    """
    partitions = list(partitions)
    futures = manager.moves.take_away(partitions)
    found = (manager.logs.get(partition) for partition in partitions)
    logs = [log for log in found if log is not None]
    moves: dict[str, list[tuple[Log, str, str]]] = {}
    failure: KafkaError | None = None
    turn = Turn(manager.services.clock)
    with trio.CancelScope(shield=True):  # half of it would leave folders that nobody looks after
        for log in logs:
            await turn.share()
            if manager.logs.pop(log.key, None) is None:  # its dir went offline meanwhile
                continue
            log.forget_files()
            log_dir = log.log_dir
            log_dir.high_watermarks.note(log.key)
            if log_dir.online:
                renamed = log_dir.file(
                    layout.renamed_dir_name(log.topic, log.partition, manager.services.randomness.uuid(), suffix)
                )
                moves.setdefault(log_dir.path, []).append((log, log.dir, renamed))
                log.retire_to(renamed)
        for in_dir in moves.values():
            try:
                await _rename(manager, in_dir, suffix)
            except KafkaError as error:
                failure = error
        for future in futures:
            try:
                await manager.moves.remove(future)
            except KafkaError as error:
                failure = error
    if failure is not None:
        raise failure
    return len(logs)


async def _rename(manager: LogManager, in_dir: Sequence[tuple[Log, str, str]], suffix: str) -> None:
    """Of one log dir: (log, folder, its new name)."""
    log_dir = in_dir[0][0].log_dir
    await manager.upkeep.forget(log_dir, {log.key for log, _, _ in in_dir})
    try:
        await manager.guarded(
            log_dir, _rename_each, manager.services.files, [(old, renamed) for _, old, renamed in in_dir]
        )
    finally:
        if suffix == layout.DELETE_DIR:
            turn = Turn(manager.services.clock)
            for log, _, renamed in in_dir:
                manager.remove_later(log_dir, renamed, log.config.file_delete_delay_ms)
                await turn.share()


def _rename_each(files: FileSystem, moves: Sequence[tuple[str, str]]) -> None:
    for old, new in moves:
        files.rename(old, new)
