"""All logs of a broker: loading them, making and deleting them, and closing them so that the next start is quick.

    manager = LogManager(files, executor, clock, randomness, config)
    cluster_id = await manager.lock()                   None where all log dirs are new
    await manager.load(cluster_id, node_id, topic_config)
    … await manager.run() in a task; get, get_or_create, delete …
    await manager.close(broker_epoch)                   flushes, and marks the stop as clean
    manager.unlock()

A log dir that cannot be used at the start, or fails later, is offline: its logs are gone from `logs`, `on_offline`
tells whoever leads or follows them, and the other dirs go on.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

import trio

from kwire.config.broker import BrokerConfig
from kwire.config.topic import LogConfig
from kwire.ports.clock import Clock
from kwire.ports.executor import Executor
from kwire.ports.files import FileSystem
from kwire.ports.randomness import Randomness
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage import checkpoints, flushing, layout, recovery
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.cleaning.log_cleaner import LogCleaner
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir, LogDirError
from kwire.storage.recovery import LoadedLog, LogTask
from kwire.storage.services import StorageServices
from kwire.storage.survey import Survey, survey
from kwire.storage.upkeep import Upkeep

T = TypeVar("T")

logger = logging.getLogger(__name__)

_LOGS_PER_JOB = 32
"""Logs that one call of a worker thread loads."""

_CHORES_WITHIN_S = 0.5
"""How long a stop goes on removing files that are due; the next start removes the others."""


class LogManager:
    """The logs of all log dirs. For the event loop's thread."""

    def __init__(
        self,
        files: FileSystem,
        executor: Executor,
        clock: Clock,
        randomness: Randomness,
        config: BrokerConfig,
        log_dirs: Sequence[str] | None = None,
    ) -> None:
        """`log_dirs`: instead of the configuration's log.dirs."""
        self._config = config
        self.services = StorageServices.of(
            files,
            executor,
            clock,
            randomness,
            config["producer.id.expiration.ms"],
            verifies_transactions=config["transaction.partition.verification.enable"],
        )
        self.dirs = [LogDir(files, path.rstrip("/") or "/") for path in log_dirs or config.log_dirs]
        for log_dir in self.dirs:
            log_dir.on_offline = self._dir_failed
        self.logs: dict[TopicPartition, Log] = {}
        """By (topic, partition); not to be changed by others."""
        self.on_offline: Callable[[LogDir, list[Log]], None] | None = None
        """Called on the event loop when a dir has failed, with the logs that are gone."""
        self._creating: dict[TopicPartition, trio.Event] = {}
        self._creating_in: Counter[str] = Counter()
        self._upkeep = Upkeep(self)
        self._cleaner = LogCleaner(self)

    @property
    def config(self) -> BrokerConfig:
        """May be replaced at run time by one with other values."""
        return self._config

    @config.setter
    def config(self, config: BrokerConfig) -> None:
        self._config = config
        self.services.producer_expiration_ms = config["producer.id.expiration.ms"]
        self.services.verifies_transactions = config["transaction.partition.verification.enable"]
        for log in self.logs.values():
            log.producer_state.expiration_ms = self.services.producer_expiration_ms

    @property
    def online_dirs(self) -> list[LogDir]:
        return [log_dir for log_dir in self.dirs if log_dir.online]

    def logs_in(self, log_dir: LogDir) -> list[Log]:
        return [log for log in self.logs.values() if log.log_dir is log_dir]

    # Starting

    async def lock(self) -> str | None:
        """Takes the locks of all log dirs, creating those that are missing; returns the cluster id they belong to.

        None where all are new. Raises LogDirError where a dir is in use, where they belong to different clusters, or
        where none can be used.
        """
        cluster_ids = {}
        for log_dir in self.dirs:
            try:
                properties = await self.services.executor.run(_lock_and_read, log_dir)
            except OSError as error:
                log_dir.fail("start failed", error)
                continue
            except LogDirError:
                self.unlock()
                raise
            if "cluster.id" in properties:
                cluster_ids[properties["cluster.id"]] = log_dir.path
        self._demand_a_dir()
        if len(cluster_ids) > 1:
            self.unlock()
            belong = ", ".join(f"{path} to {cluster_id}" for cluster_id, path in cluster_ids.items())
            raise LogDirError(f"the log dirs belong to different clusters: {belong}")
        return next(iter(cluster_ids), None)

    def unlock(self) -> None:
        for log_dir in self.dirs:
            log_dir.unlock()

    async def load(self, cluster_id: str, node_id: int, topic_config: Callable[[str], LogConfig]) -> None:
        """Loads all logs; `topic_config` gives the configuration of a topic by name.

        Raises LogDirError where a dir belongs to another broker or cluster, where a partition is in two dirs, or where
        no dir can be used.
        """
        for log_dir in self.online_dirs:
            try:
                found = await self.services.executor.run(
                    survey, log_dir, cluster_id, node_id, self.services.randomness.uuid
                )
            except OSError as error:
                log_dir.fail("start failed", error)
                continue
            for name in found.deleted:
                self._remove_later(log_dir, log_dir.file(name), 0)
            await self._load_logs(log_dir, found, topic_config)
            log_dir.loaded = True
        self._demand_a_dir()

    def _demand_a_dir(self) -> None:
        if not self.online_dirs:
            self.unlock()
            reasons = "; ".join(log_dir.offline_reason or "" for log_dir in self.dirs)
            raise LogDirError(f"none of the log dirs can be used: {reasons}")

    async def _load_logs(self, log_dir: LogDir, found: Survey, topic_config: Callable[[str], LogConfig]) -> None:
        services = self.services
        now_ms = services.clock.wall_ms()
        tasks = [
            found.task(log_dir, key, topic_config(key[0]), now_ms, services.producer_expiration_ms)
            for key in found.partitions
        ]
        if not found.clean and tasks:
            logger.warning("log dir %s was not stopped cleanly: recovering %d partitions", log_dir.path, len(tasks))
        for key in found.partitions:
            if key in self.logs:
                raise LogDirError(
                    f"partition {key[0]}-{key[1]} is in two log dirs, {self.logs[key].log_dir.path} and "
                    f"{log_dir.path}: remove one of them"
                )
        places = trio.Semaphore(self.config["num.recovery.threads.per.data.dir"])
        async with trio.open_nursery() as nursery:
            for start in range(0, len(tasks), _LOGS_PER_JOB):
                await places.acquire()
                nursery.start_soon(self._load_some, log_dir, tasks[start : start + _LOGS_PER_JOB], places)

    async def _load_some(self, log_dir: LogDir, tasks: list[LogTask], places: trio.Semaphore) -> None:
        try:
            loaded = await self.services.executor.run(_load_each, self.services, tasks)
        except OSError as error:
            log_dir.fail("start failed", error)
            return
        finally:
            places.release()
        if log_dir.online:
            for task, state in zip(tasks, loaded, strict=True):
                key = task.topic, task.partition
                self.logs[key] = Log(self.services, log_dir, *key, task.config, state)

    # Logs

    def get(self, topic: str, partition: int) -> Log | None:
        return self.logs.get((topic, partition))

    async def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig,
        *,
        directory: bytes | None = None,
        is_new: bool = False,
    ) -> Log:
        """The partition's log, made where there is none: in the dir with the id `directory`, or the least loaded.

        `is_new`: the partition was created just now, so that it cannot lie in a dir that is offline. Raises
        INCONSISTENT_TOPIC_ID where the log is of another topic of that name, and KAFKA_STORAGE_ERROR.
        """
        key = topic, partition
        while key in self._creating:
            await self._creating[key].wait()
        log = self.logs.get(key)
        if log is None:
            self._creating[key] = trio.Event()
            try:
                log = await self._create(key, topic_id, config, directory, is_new)
            finally:
                self._creating.pop(key).set()
            return log
        if log.topic_id is None and topic_id != uuids.ZERO:
            await self._guarded(log.log_dir, _write_topic_id, self.services, log.dir, topic_id)
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
        offline = ", ".join(log_dir.path for log_dir in self.dirs if not log_dir.online)
        if offline and not is_new:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Can't create the log of {key[0]}-{key[1]}: it may be in a log dir that is offline ({offline})",
            )
        log_dir = self._place(directory)
        services = self.services
        task = LogTask(
            log_dir.file(layout.partition_dir_name(*key)),
            *key,
            config,
            clean=True,
            now_ms=services.clock.wall_ms(),
            producer_expiration_ms=services.producer_expiration_ms,
        )
        self._creating_in[log_dir.path] += 1
        try:
            state = await self._guarded(log_dir, _create_log, services, task, topic_id)
        finally:
            self._creating_in[log_dir.path] -= 1
        log_dir.check_online()
        log = self.logs[key] = Log(services, log_dir, *key, config, state)
        return log

    def _place(self, directory: bytes | None) -> LogDir:
        """The dir of that id if there is one online, else the one with the fewest partitions."""
        online = self.online_dirs
        for log_dir in online:
            if log_dir.id == directory:
                return log_dir
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "All log dirs are offline")
        if len(online) == 1:
            return online[0]
        counts = Counter(log.log_dir.path for log in self.logs.values()) + self._creating_in
        return min(online, key=lambda log_dir: counts[log_dir.path])

    async def delete(self, partitions: Iterable[TopicPartition]) -> int:
        """Takes partitions' logs out of sight; their files go after file.delete.delay.ms. Returns how many there were.

        A name that is created again begins anew. Raises KAFKA_STORAGE_ERROR where a dir failed meanwhile.
        """
        logs = self._present(partitions)
        await self._take_away(logs, layout.DELETE_DIR)
        return len(logs)

    async def set_aside(self, partitions: Iterable[TopicPartition]) -> int:
        """Takes the logs of partitions that nobody knows any more out of sight; their files stay, in `-stray` folders.

        Returns how many there were. Raises KAFKA_STORAGE_ERROR.
        """
        logs = self._present(partitions)
        await self._take_away(logs, layout.STRAY_DIR)
        return len(logs)

    def _present(self, partitions: Iterable[TopicPartition]) -> list[Log]:
        found = (self.logs.get(partition) for partition in partitions)
        return [log for log in found if log is not None]

    async def _take_away(self, logs: Sequence[Log], suffix: str) -> None:
        """Renames the logs' folders in the dirs that are online; those of deleted partitions are removed later.

        Each dir's checkpoints forget all of them at once, and do so first: what a checkpoint says of a name would be
        taken for true of the next log of that name.
        """
        moves: dict[str, list[tuple[Log, str, str]]] = {}
        for log in logs:
            del self.logs[log.topic, log.partition]
            log.forget_files()
            log_dir = log.log_dir
            if log_dir.online:
                unique = self.services.randomness.uuid()
                renamed = log_dir.file(layout.renamed_dir_name(log.topic, log.partition, unique, suffix))
                moves.setdefault(log_dir.path, []).append((log, log.dir, renamed))
                log.retire_to(renamed)
        failure: KafkaError | None = None
        with trio.CancelScope(shield=True):  # half of it would leave folders that nobody looks after
            for in_dir in moves.values():
                log_dir = in_dir[0][0].log_dir
                await self._upkeep.forget(log_dir, {(log.topic, log.partition) for log, _, _ in in_dir})
                try:
                    await self._guarded(
                        log_dir, _rename_each, self.services.files, [(old, new) for _, old, new in in_dir]
                    )
                except KafkaError as error:
                    failure = error
                if suffix == layout.DELETE_DIR:
                    for log, _, renamed in in_dir:
                        self._remove_later(log_dir, renamed, log.config.file_delete_delay_ms)
        if failure is not None:
            raise failure

    def _remove_later(self, log_dir: LogDir, folder: str, delay_ms: int) -> None:
        def remove() -> None:
            with suppress(FileNotFoundError):
                self.services.files.remove_tree(folder)

        self.services.chores.later(delay_ms, log_dir, remove)

    async def _guarded(self, log_dir: LogDir, function: Callable[..., T], *arguments: object) -> T:
        """Runs a function in a worker thread; an OSError takes the dir offline."""
        try:
            return await self.services.executor.run(function, *arguments)
        except OSError as error:
            raise log_dir.fail("access failed", error) from error

    # Running and stopping

    async def run(self) -> None:
        """What goes on beside the requests, until cancelled: retention, cleaning, flushes, checkpoints, removals."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.services.chores.run)
            nursery.start_soon(self._upkeep.run)
            nursery.start_soon(self._cleaner.run)

    async def close(self, broker_epoch: int) -> None:
        """Flushes and closes all logs and marks each dir as stopped cleanly. `run` must have ended.

        A dir whose logs are not all loaded, because the start was refused or given up, is left as it was found.
        """
        with trio.move_on_after(_CHORES_WITHIN_S):
            await self.services.chores.finish_due()
        async with trio.open_nursery() as nursery:
            for log_dir in self.online_dirs:
                if log_dir.loaded:
                    nursery.start_soon(self._close_dir, log_dir, broker_epoch)
                else:
                    nursery.start_soon(self._tolerantly, log_dir, log_dir.put_back_clean_shutdown)

    async def _close_dir(self, log_dir: LogDir, broker_epoch: int) -> None:
        services = self.services
        await flushing.close_all(self.logs_in(log_dir), log_dir, services.files, services.executor)
        if log_dir.online:
            await self._upkeep.checkpoint_dir(log_dir)
        if log_dir.online:
            await self._tolerantly(log_dir, log_dir.mark_clean_shutdown, broker_epoch)

    async def _tolerantly(self, log_dir: LogDir, function: Callable[..., None], *arguments: object) -> None:
        """As `_guarded`, for what nobody waits for."""
        with suppress(KafkaError):
            await self._guarded(log_dir, function, *arguments)

    def _dir_failed(self, log_dir: LogDir) -> None:
        gone = self.logs_in(log_dir)
        for log in gone:
            del self.logs[log.topic, log.partition]
            log.forget_files()
        if self.on_offline is not None:
            self.on_offline(log_dir, gone)


def _rename_each(files: FileSystem, moves: Sequence[tuple[str, str]]) -> None:
    for old, new in moves:
        files.rename(old, new)


def _lock_and_read(log_dir: LogDir) -> dict[str, str]:
    log_dir.lock()
    return log_dir.read_identity()


def _load_each(services: StorageServices, tasks: list[LogTask]) -> list[LoadedLog]:
    return [recovery.load(services.files, services.open_files, task) for task in tasks]


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
