"""Making the logs of new partitions: in which log dir, and once however many ask for it at the same time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import trio

from kwire.config.topic import LogConfig
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage import checkpoints, layout, recovery
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir
from kwire.storage.recovery import LoadedLog, LogTask
from kwire.storage.services import StorageServices

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager


class Creation:
    """What one manager makes."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self._under_way: dict[TopicPartition, trio.Event] = {}
        self._under_way_in: Counter[str] = Counter()
        self.preferred: dict[TopicPartition, LogDir] = {}
        """Where partitions are to be made that are not here yet, as an admin wants it."""

    async def get_or_create(
        self, key: TopicPartition, topic_id: bytes, config: LogConfig, directory: bytes | None, *, is_new: bool
    ) -> Log:
        """See `LogManager.get_or_create`."""
        manager = self._manager
        while key in self._under_way:
            await self._under_way[key].wait()
        log = manager.logs.get(key)
        if log is None:
            self._under_way[key] = trio.Event()
            try:
                log = await self._create(key, topic_id, config, directory, is_new)
            finally:
                self._under_way.pop(key).set()
            return log
        if log.topic_id is None and topic_id != uuids.ZERO:
            await manager.guarded(log.log_dir, _write_topic_id, manager.services, log.dir, topic_id)
            log.topic_id = topic_id
        if log.topic_id is not None and log.topic_id != topic_id != uuids.ZERO:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{log.dir} is of topic id {uuids.to_text(log.topic_id)}, not of {uuids.to_text(topic_id)}",
            )
        return log

    async def _create(
        self, key: TopicPartition, topic_id: bytes, config: LogConfig, directory: bytes | None, is_new: bool
    ) -> Log:
        manager, services = self._manager, self._manager.services
        offline = ", ".join(log_dir.path for log_dir in manager.dirs if not log_dir.online)
        if offline and not is_new:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Can't create the log of {key[0]}-{key[1]}: it may be in a log dir that is offline ({offline})",
            )
        log_dir = self._place(key, directory)
        task = LogTask(
            log_dir.file(layout.partition_dir_name(*key)),
            key,
            config,
            clean=True,
            now_ms=services.clock.wall_ms(),
            producer_expiration_ms=services.producer_expiration_ms,
        )
        self._under_way_in[log_dir.path] += 1
        try:
            state = await manager.guarded(log_dir, _create_log, services, task, topic_id)
        finally:
            self._under_way_in[log_dir.path] -= 1
        log_dir.check_online()
        log = manager.logs[key] = Log(services, log_dir, key, config, state)
        return log

    def _place(self, key: TopicPartition, directory: bytes | None) -> LogDir:
        """The dir that is preferred or has that id if it is online, else the one with the fewest partitions."""
        manager = self._manager
        online = manager.online_dirs
        online = [log_dir for log_dir in online if log_dir.id not in manager.doubtful] or online
        preferred = self.preferred.pop(key, None)
        if preferred in online:
            return preferred
        for log_dir in online:
            if log_dir.id == directory:
                return log_dir
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "All log dirs are offline")
        if len(online) == 1:
            return online[0]
        counts = Counter(log.log_dir.path for log in manager.logs.values()) + self._under_way_in
        counts.update(future.log_dir.path for future in manager.moves.futures.values())
        return min(online, key=lambda log_dir: counts[log_dir.path])


def _create_log(services: StorageServices, task: LogTask, topic_id: bytes) -> LoadedLog:
    services.files.make_dirs(task.dir)
    if topic_id != uuids.ZERO:
        _write_topic_id(services, task.dir, topic_id)
    loaded = recovery.load(services.files, services.open_files, task)
    # Empty for now: making it here spares a stop soon after the creation of thousands of partitions as many new files.
    services.files.open(f"{task.dir}/{layout.LEADER_EPOCHS}", create=True).close()
    return loaded


def _write_topic_id(services: StorageServices, folder: str, topic_id: bytes) -> None:
    """Without fsync: a crash may cost the file, and then the metadata says which topic the partition is of."""
    data = checkpoints.encode_partition_metadata(uuids.to_text(topic_id))
    services.files.write(f"{folder}/{layout.PARTITION_METADATA}", data)
