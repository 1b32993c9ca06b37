"""What earlier runs left in the log dirs and a start puts in order, before and after the logs are loaded."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.ports.files import FileSystem
from kwire.protocol import uuids
from kwire.protocol.errors import KafkaError
from kwire.storage import checkpoints, layout
from kwire.storage.checkpoints import CorruptCheckpoint
from kwire.storage.log_dir import LogDir
from kwire.storage.survey import Survey

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)

Surveys = Sequence[tuple[LogDir, Survey]]


async def set_aside_doubles(manager: LogManager, surveys: Surveys, topic_id: Callable[[str], bytes | None]) -> None:
    """Of a partition in two log dirs, sets those aside that are of another topic of that name.

    So it is when a topic was deleted and created again while one of its log dirs was offline.
    """
    found_in = Counter(key for _, found in surveys for key in found.partitions)
    for log_dir, found in surveys:
        for key in [key for key in found.partitions if found_in[key] > 1]:
            wanted = topic_id(key[0])
            folder = log_dir.file(layout.partition_dir_name(*key))
            with suppress(KafkaError):
                present = await manager.guarded(log_dir, topic_id_of, manager.services.files, folder)
                if wanted is None or present in (None, wanted):
                    continue
                unique = manager.services.randomness.uuid()
                stray = log_dir.file(layout.renamed_dir_name(*key, unique, layout.STRAY_DIR))
                logger.warning("set aside as %s, since it is of a topic that was deleted: %s", stray, folder)
                await manager.guarded(log_dir, manager.services.files.rename, folder, stray)
                found.partitions.remove(key)


async def forget_gone(manager: LogManager, surveys: Surveys) -> None:
    """Sees to it that no checkpoint speaks of partitions that are not in its dir: they may come there anew."""
    for log_dir, found in surveys:
        gone = {key for name in layout.OFFSET_CHECKPOINTS for key in log_dir.checkpoint(name)}
        gone.difference_update(found.partitions, found.futures)
        if gone:
            await manager.upkeep.forget(log_dir, gone)


def topic_id_of(files: FileSystem, folder: str) -> bytes | None:
    """What partition.metadata says; None where it is missing or cannot be read. For a worker thread."""
    path = f"{folder}/{layout.PARTITION_METADATA}"
    if files.exists(path):
        with suppress(CorruptCheckpoint, ValueError):
            return uuids.from_text(checkpoints.decode_partition_metadata(files.read(path)))
    return None
