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
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import trio

from kwire.config.broker import BrokerConfig
from kwire.config.topic import LogConfig
from kwire.ports.clock import Clock
from kwire.ports.executor import Executor
from kwire.ports.files import FileSystem
from kwire.ports.randomness import Randomness
from kwire.ports.workers import Workers
from kwire.protocol.errors import KafkaError
from kwire.storage import flushing, layout
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.cleaning.log_cleaner import LogCleaner
from kwire.storage.creation import Creation
from kwire.storage.loading import Loading
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir, LogDirError
from kwire.storage.moving.future import FutureLog
from kwire.storage.moving.moves import ReplicaMoves
from kwire.storage.removal import take_away
from kwire.storage.room import Room
from kwire.storage.services import StorageServices
from kwire.storage.upkeep import Upkeep

T = TypeVar("T")

logger = logging.getLogger(__name__)

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
        *,
        workers: Workers | None = None,
    ) -> None:
        """`log_dirs`: instead of the configuration's log.dirs. `workers`: in this process unless given."""
        self._config = config
        self.services = StorageServices.of(
            files,
            executor,
            clock,
            randomness,
            config["producer.id.expiration.ms"],
            workers=workers,
            verifies_transactions=config["transaction.partition.verification.enable"],
        )
        self.dirs = [LogDir(files, path.rstrip("/") or "/") for path in log_dirs or config.log_dirs]
        for log_dir in self.dirs:
            log_dir.on_offline = self._dir_failed
        self.dir_is_missing = False
        """Whether a log dir of the last run is not here, and what is missed may be in it."""
        self.doubtful: set[bytes] = set()
        """The ids of log dirs that may be what lies below a volume that is not mounted: nothing new is made there."""
        self.logs: dict[TopicPartition, Log] = {}
        """By (topic, partition); not to be changed by others."""
        self.on_offline: Callable[[LogDir, list[Log]], None] | None = None
        """Called on the event loop when a dir has failed, with the logs that are gone."""
        self.upkeep = Upkeep(self)
        self._creation = Creation(self)
        self.cleaner = LogCleaner(self)
        self.moves = ReplicaMoves(self)

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

    @property
    def all_here(self) -> bool:
        """Whether no log dir is offline, and none of the last run is missing."""
        return not self.dir_is_missing and all(log_dir.online for log_dir in self.dirs)

    def dir_at(self, path: str) -> LogDir | None:
        """The dir of that path, which must be absolute."""
        absolute = self.services.files.absolute
        return next((log_dir for log_dir in self.dirs if absolute(log_dir.path) == path), None)

    def logs_in(self, log_dir: LogDir) -> list[Log]:
        return [log for log in self.logs.values() if log.log_dir is log_dir]

    def _count_in(self, log_dirs: Sequence[LogDir]) -> int:
        return sum(log.log_dir in log_dirs for log in self.logs.values())

    def _look_after_room(self) -> None:
        """One for each volume, which may hold several dirs."""
        files, volumes = self.services.files, dict[int, list[LogDir]]()
        for log_dir in self.online_dirs:
            with suppress(OSError):  # what is written there will tell
                volumes.setdefault(files.volume(log_dir.path), []).append(log_dir)
        for log_dirs in volumes.values():
            paths = [log_dir.path for log_dir in log_dirs]
            room = Room(files, self.services.clock, paths, partial(self._count_in, log_dirs))
            for log_dir in log_dirs:
                log_dir.room = room

    def kept_in(self, log_dir: LogDir) -> list[Log | FutureLog]:
        """What the dir's checkpoints speak of: the logs that are there, and those that are on their way there."""
        return [*self.logs_in(log_dir), *self.moves.futures_in(log_dir)]

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
        self._look_after_room()
        return next(iter(cluster_ids), None)

    def unlock(self) -> None:
        for log_dir in self.dirs:
            log_dir.unlock()

    async def load(
        self,
        cluster_id: str,
        node_id: int,
        topic_config: Callable[[str], LogConfig],
        topic_id: Callable[[str], bytes | None] = lambda name: None,
        known_dirs: Collection[bytes] = (),
    ) -> None:
        """Loads all logs; `topic_config` and `topic_id` give the configuration and the id of a topic by name.

        `known_dirs`: the ids of the log dirs of the last run, of which one that is not here may hold what is missed.
        Raises LogDirError where a dir belongs to another broker or cluster, where a partition is in two dirs, or where
        no dir can be used.
        """
        await Loading(self, topic_config, topic_id, known_dirs).run(cluster_id, node_id)
        self._demand_a_dir()

    def _demand_a_dir(self) -> None:
        if not self.online_dirs:
            self.unlock()
            reasons = "; ".join(log_dir.offline_reason or "" for log_dir in self.dirs)
            raise LogDirError(f"none of the log dirs can be used: {reasons}")

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
        return await self._creation.get_or_create((topic, partition), topic_id, config, directory, is_new=is_new)

    def prefer(self, partition: TopicPartition, log_dir: LogDir) -> None:
        """When the log of that partition is made, it is made there."""
        self._creation.preferred[partition] = log_dir

    async def delete(self, partitions: Iterable[TopicPartition]) -> int:
        """Takes partitions' logs out of sight; their files go after file.delete.delay.ms. Returns how many there were.

        A name that is created again begins anew. Raises KAFKA_STORAGE_ERROR where a dir failed meanwhile.
        """
        return await take_away(self, partitions, layout.DELETE_DIR)

    async def set_aside(self, partitions: Iterable[TopicPartition]) -> int:
        """Takes the logs of partitions that nobody knows any more out of sight; their files stay, in `-stray` folders.

        Returns how many there were. Raises KAFKA_STORAGE_ERROR.
        """
        return await take_away(self, partitions, layout.STRAY_DIR)

    def remove_later(self, log_dir: LogDir, folder: str, delay_ms: int) -> None:
        """A folder that nobody uses any more goes in `delay_ms`."""

        def remove() -> None:
            with suppress(FileNotFoundError):
                self.services.files.remove_tree(folder)

        self.services.chores.later(delay_ms, log_dir, remove, removes=True)

    async def guarded(self, log_dir: LogDir, function: Callable[..., T], *arguments: object) -> T:
        """Runs a function in a worker thread; an OSError takes the dir offline."""
        try:
            return await self.services.executor.run(function, *arguments)
        except OSError as error:
            raise log_dir.fail("access failed", error) from error

    # Running and stopping

    async def run(self) -> None:
        """What goes on beside the requests, until cancelled: retention, cleaning, flushes, moves, removals."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.services.chores.run)
            nursery.start_soon(self.upkeep.run)
            nursery.start_soon(self.cleaner.run)
            nursery.start_soon(self.moves.run)

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
                    nursery.start_soon(self.tolerantly, log_dir, log_dir.put_back_clean_shutdown)

    async def _close_dir(self, log_dir: LogDir, broker_epoch: int) -> None:
        services = self.services
        await flushing.close_all(self.logs_in(log_dir), log_dir, services.files, services.executor)
        if log_dir.online:
            await self.upkeep.checkpoint_dir(log_dir)
        if log_dir.online:
            await self.tolerantly(log_dir, log_dir.mark_clean_shutdown, broker_epoch)

    async def tolerantly(self, log_dir: LogDir, function: Callable[..., None], *arguments: object) -> None:
        """As `guarded`, for what nobody waits for."""
        with suppress(KafkaError):
            await self.guarded(log_dir, function, *arguments)

    def _dir_failed(self, log_dir: LogDir, why: str) -> None:
        self.moves.dir_failed(log_dir)
        gone = self.logs_in(log_dir)
        logger.error(
            "log dir %s is offline until the broker restarts (%d partitions in it; %d of %d log dirs are left): %s",
            log_dir.path,
            len(gone),
            len(self.online_dirs),
            len(self.dirs),
            why,
        )
        for log in gone:
            del self.logs[log.key]
            log.forget_files()
        if self.on_offline is not None:
            self.on_offline(log_dir, gone)


def _lock_and_read(log_dir: LogDir) -> dict[str, str]:
    log_dir.lock()
    return log_dir.read_identity()
