"""Moves that a stop interrupted, at the next start."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.protocol.errors import KafkaError
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.leftovers import topic_id_of
from kwire.storage.log_dir import LogDir
from kwire.storage.moving.future import FutureLog
from kwire.storage.survey import Survey

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)


async def promote_lonely(manager: LogManager, surveys: Sequence[tuple[LogDir, Survey]]) -> None:
    """Gives future logs without a log the partition's name where the broker was stopped amid the swap.

    That the swap had begun says the folder of the log, which was renamed to be deleted: without that the log may be in
    a dir that is not here, and the future log a half of it. A dir that fails goes offline.
    """
    present = {key for _, found in surveys for key in found.partitions}
    for log_dir, found in surveys:
        for key, name in [item for item in found.futures.items() if item[0] not in present]:
            folder = log_dir.file(layout.partition_dir_name(*key))
            with suppress(KafkaError):
                topic_id = await manager.guarded(log_dir, topic_id_of, manager.services.files, log_dir.file(name))
                if not await _was_left(manager, surveys, key, topic_id):
                    continue
                logger.warning("there is no log of %s-%d but %s, which takes its place", *key, log_dir.file(name))
                await manager.guarded(log_dir, manager.services.files.rename, log_dir.file(name), folder)
                del found.futures[key]
                found.partitions.append(key)
                found.promoted.add(key)
                present.add(key)


async def _was_left(
    manager: LogManager, surveys: Sequence[tuple[LogDir, Survey]], key: TopicPartition, topic_id: bytes | None
) -> bool:
    """Whether a log of that partition was renamed to be deleted; if its topic is known, of that topic."""
    for log_dir, found in surveys:
        for name in found.deleted:
            parsed = layout.parse_partition_dir(name)
            if parsed is not None and parsed[:2] == key:
                of = await manager.guarded(log_dir, topic_id_of, manager.services.files, log_dir.file(name))
                if of in (None, topic_id):
                    return True
    return False


async def resume(manager: LogManager, surveys: Sequence[tuple[LogDir, Survey]]) -> None:
    """Goes on with the moves of the logs that are there, and has the other future logs removed.

    Those of a log that may lie in a log dir that is not here, or offline, stay as they are.
    """
    all_here = not manager.dir_is_missing and all(log_dir.online for log_dir in manager.dirs)
    for log_dir, found in surveys:
        for key, name in found.futures.items():
            log, folder = manager.logs.get(key), log_dir.file(name)
            if not log_dir.online or (log is None and not all_here):
                logger.warning("leaving %s alone: its log may be in a log dir that is offline or not here", folder)
                continue
            wanted = log is not None and log.log_dir is not log_dir and key not in manager.moves.futures
            with suppress(KafkaError):
                topic_id = await manager.guarded(log_dir, topic_id_of, manager.services.files, folder)
                if log is not None and wanted and topic_id in (None, log.topic_id):
                    manager.moves.take_up(FutureLog(log, log_dir, folder))
                else:
                    manager.remove_later(log_dir, folder, 0)
