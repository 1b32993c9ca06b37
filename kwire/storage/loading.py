"""The start of a LogManager: all log dirs are looked through, and then their logs are loaded, some at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import trio

from kwire.config.topic import LogConfig
from kwire.storage import layout, recovery
from kwire.storage.leftovers import forget_gone, set_aside_doubles, size_of
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir, LogDirError
from kwire.storage.recovery import LoadedLog, LogTask
from kwire.storage.services import StorageServices
from kwire.storage.survey import Survey, survey

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)

_LOGS_PER_JOB = 64
"""Logs that one call of a worker thread loads: a few milliseconds' work, where none of it has to wait for the disk."""

_PATIENCE_S = 0.05
"""A job that takes longer waits for the disk, or reads much: then another thread loads others meanwhile. As long as all
is quick it would not help: the threads would only take turns at the interpreter, at three times the price."""


class Loading:
    """One start. `topic_config` and `topic_id` give the configuration and the id of a topic by name."""

    def __init__(
        self,
        manager: LogManager,
        topic_config: Callable[[str], LogConfig],
        topic_id: Callable[[str], bytes | None],
        known_dirs: Collection[bytes],
    ) -> None:
        self._manager = manager
        self._services = manager.services
        self._topic_config = topic_config
        self._topic_id = topic_id
        self._known_dirs = known_dirs

    async def run(self, cluster_id: str, node_id: int) -> None:
        """See `LogManager.load`. A dir that can't be read goes offline."""
        services, manager = self._services, self._manager
        surveys: list[tuple[LogDir, Survey]] = []
        for log_dir in manager.online_dirs:
            try:
                found = await services.executor.run(survey, log_dir, cluster_id, node_id, services.randomness.uuid)
            except OSError as error:
                log_dir.fail("start failed", error)
                continue
            surveys.append((log_dir, found))
        present = {log_dir.id for log_dir in manager.online_dirs}
        manager.dir_is_missing = len(present) < len(manager.dirs) or not present.issuperset(self._known_dirs)
        if len(surveys) > 1:
            await set_aside_doubles(manager, surveys, self._topic_id)
        if any(found.futures for _, found in surveys):
            from kwire.storage.moving.resuming import promote_lonely

            await promote_lonely(manager, surveys)
        for log_dir, found in surveys:
            for name in found.deleted:
                if manager.all_here or not self._may_be_missed(name, surveys):
                    manager.remove_later(log_dir, log_dir.file(name), 0)
            await self._load_logs(log_dir, found)
            log_dir.loaded = True
        if any(found.futures for _, found in surveys):
            from kwire.storage.moving.resuming import resume

            await resume(manager, surveys, self._topic_id, self._known_dirs)
        await forget_gone(manager, surveys)

    def _may_be_missed(self, deleted: str, surveys: Sequence[tuple[LogDir, Survey]]) -> bool:
        """Whether a folder that is to be removed may be of a log that was moved to a dir that is not here: it tells
        there that the move was over, and may be all that is left."""
        parsed = layout.parse_partition_dir(deleted)
        if parsed is None or self._topic_id(parsed.topic) is None:
            return False
        return not any((parsed.topic, parsed.partition) in found.partitions for _, found in surveys)

    async def _load_logs(self, log_dir: LogDir, found: Survey) -> None:
        services, manager = self._services, self._manager
        now_ms = services.clock.wall_ms()
        tasks = [
            found.task(log_dir, key, self._topic_config(key[0]), now_ms, services.producer_expiration_ms)
            for key in found.partitions
        ]
        if not found.clean and tasks:
            logger.warning("log dir %s was not stopped cleanly: recovering %d partitions", log_dir.path, len(tasks))
        for number, key in enumerate(found.partitions):
            if key in manager.logs:
                other = manager.logs[key]
                size = await services.executor.run(size_of, services.files, tasks[number].dir)
                raise LogDirError(
                    f"partition {key[0]}-{key[1]} is in two log dirs, {other.log_dir.path} ({other.size} bytes) and "
                    f"{log_dir.path} ({size} bytes): take the folder {layout.partition_dir_name(*key)} out of one"
                )
        places = trio.Semaphore(manager.config["num.recovery.threads.per.data.dir"])
        async with trio.open_nursery() as nursery:
            for start in range(0, len(tasks), _LOGS_PER_JOB):
                await places.acquire()
                done = trio.Event()
                nursery.start_soon(self._load_some, log_dir, tasks[start : start + _LOGS_PER_JOB], places, done)
                with trio.move_on_after(_PATIENCE_S):
                    await done.wait()

    async def _load_some(self, log_dir: LogDir, tasks: list[LogTask], places: trio.Semaphore, done: trio.Event) -> None:
        try:
            loaded = await self._services.executor.run(_load_each, self._services, tasks)
        except OSError as error:
            log_dir.fail("start failed", error)
            return
        finally:
            places.release()
            done.set()
        if log_dir.online:
            for task, state in zip(tasks, loaded, strict=True):
                if state is None:
                    logger.warning("leaving %s alone: it is no folder", task.dir)
                    continue
                self._manager.logs[task.key] = Log(self._services, log_dir, task.key, task.config, state)


def _load_each(services: StorageServices, tasks: list[LogTask]) -> list[LoadedLog | None]:
    """None for what is no folder."""
    found: list[LoadedLog | None] = []
    for task in tasks:
        try:
            found.append(recovery.load(services.files, services.open_files, task))
        except NotADirectoryError:
            found.append(None)
    return found
