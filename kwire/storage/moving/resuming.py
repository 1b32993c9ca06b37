"""Moves that a stop interrupted, at the next start."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.protocol.errors import KafkaError
from kwire.storage import layout
from kwire.storage.leftovers import topic_id_of
from kwire.storage.log_dir import LogDir
from kwire.storage.moving.future import FutureLog
from kwire.storage.survey import Survey

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)


async def promote_lonely(manager: LogManager, surveys: Sequence[tuple[LogDir, Survey]]) -> None:
    """Gives future logs without a log the partition's name where the broker was stopped amid the swap.

    That the swap had begun says the folder of the log, which was renamed to be deleted, with the same id: without that
    the log may be in a dir that is not here, and the future log a half of it. A dir that fails goes offline.
    """
    present = {key for _, found in surveys for key in found.partitions}
    for log_dir, found in surveys:
        for key, name in [item for item in found.futures.items() if item[0] not in present]:
            folder = log_dir.file(layout.partition_dir_name(*key))
            with suppress(KafkaError):
                if not any(layout.left_behind_name(name) in other.deleted for _, other in surveys):
                    continue
                logger.warning("there is no log of %s-%d but %s, which takes its place", *key, log_dir.file(name))
                await manager.guarded(log_dir, manager.services.files.rename, log_dir.file(name), folder)
                del found.futures[key]
                found.partitions.append(key)
                found.promoted.add(key)
                present.add(key)


async def resume(
    manager: LogManager,
    surveys: Sequence[tuple[LogDir, Survey]],
    topic_id: Callable[[str], bytes | None],
    known_dirs: Collection[bytes],
) -> None:
    """Goes on with the moves of the logs that are there, and has the other future logs removed.

    Those of a log that may lie in a log dir that is not here, or offline, stay as they are; so do those in a dir of
    which nobody knew while another one is missing, since it may lie below that one's volume. One whose log is nowhere,
    although its topic is known, is set aside: it may be all that there is of it.
    """
    for log_dir, found in surveys:
        for key, name in found.futures.items():
            log, folder = manager.logs.get(key), log_dir.file(name)
            if not log_dir.online or (not manager.all_here and (log is None or log_dir.id not in known_dirs)):
                logger.warning("leaving %s alone: a log dir is offline or not here", folder)
                continue
            wanted = log is not None and log.log_dir is not log_dir and key not in manager.moves.futures
            with suppress(KafkaError):
                present = await manager.guarded(log_dir, topic_id_of, manager.services.files, folder)
                if log is not None and wanted and present in (None, log.topic_id):
                    manager.moves.take_up(FutureLog(log, log_dir, folder))
                elif log is None and (known := topic_id(key[0])) is not None and present in (None, known):
                    unique = manager.services.randomness.uuid()
                    stray = log_dir.file(layout.renamed_dir_name(*key, unique, layout.STRAY_DIR))
                    logger.warning("set aside as %s, since its log is in no log dir: %s", stray, folder)
                    await manager.guarded(log_dir, manager.services.files.rename, folder, stray)
                else:
                    manager.remove_later(log_dir, folder, 0)
