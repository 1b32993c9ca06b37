"""What earlier runs left in the log dirs and a start puts in order, before and after the logs are loaded."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kwire.ports.files import FileSystem
from kwire.protocol import uuids
from kwire.protocol.errors import KafkaError
from kwire.storage import checkpoints, layout
from kwire.storage.checkpoints import CorruptCheckpoint, TopicPartition
from kwire.storage.log_dir import LogDir
from kwire.storage.survey import Survey

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)

Surveys = Sequence[tuple[LogDir, Survey]]


async def set_aside_doubles(manager: LogManager, surveys: Surveys, topic_id: Callable[[str], bytes | None]) -> None:
    """Of a partition in two log dirs, sets those aside that are of another topic of that name.

    So it is when a topic was deleted and created again while one of its log dirs was offline. A kill while it was first
    created may have left a folder that does not say of which topic it is, and that has no record: it goes too, where
    another one does say so.
    """
    files = manager.services.files
    found_in = Counter(key for _, found in surveys for key in found.partitions)
    folders: dict[TopicPartition, list[_Double]] = {}
    for log_dir, found in surveys:
        for key in [key for key in found.partitions if found_in[key] > 1]:
            folder = log_dir.file(layout.partition_dir_name(*key))
            with suppress(KafkaError):
                of, size = await manager.guarded(log_dir, _look_at, files, folder)
                folders.setdefault(key, []).append(_Double(log_dir, found, folder, of, size))
    for key, doubles in folders.items():
        wanted = topic_id(key[0])
        if wanted is None:
            continue
        told = any(double.topic_id == wanted for double in doubles)
        for log_dir, found, folder, of, size in doubles:
            with suppress(KafkaError):
                if of == wanted or (of is None and (size or not told)):
                    continue
                unique = manager.services.randomness.uuid()
                stray = log_dir.file(layout.renamed_dir_name(*key, unique, layout.STRAY_DIR))
                logger.warning("set aside as %s, since it is of a topic that was deleted: %s", stray, folder)
                await manager.guarded(log_dir, files.rename, folder, stray)
                found.partitions.remove(key)


class _Double(NamedTuple):
    log_dir: LogDir
    found: Survey
    folder: str
    topic_id: bytes | None
    size: int


def _look_at(files: FileSystem, folder: str) -> tuple[bytes | None, int]:
    """Of which topic a log is, where it says so, and the bytes of its segments. For a worker thread."""
    return topic_id_of(files, folder), size_of(files, folder)


def size_of(files: FileSystem, folder: str) -> int:
    """Bytes of the segments of a log that is not loaded. For a worker thread."""
    return sum(files.file_size(f"{folder}/{name}") for name in files.list(folder) if name.endswith(layout.LOG))


async def forget_gone(manager: LogManager, surveys: Surveys) -> None:
    """Sees to it that no checkpoint speaks of partitions that are not in its dir: they may come there anew."""
    for log_dir, found in surveys:
        gone = {*found.recovery_points, *found.log_start_offsets, *found.high_watermarks, *found.cleaned}
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
