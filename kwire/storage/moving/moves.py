"""All moves of logs between the log dirs of a broker."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.errors import CorruptBatchError
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir
from kwire.storage.moving.future import FutureLog
from kwire.storage.throttle import Throttle

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)


class ReplicaMoves:
    """The moves of one manager. For the event loop's thread."""

    def __init__(self, manager: LogManager) -> None:
        self.futures: dict[TopicPartition, FutureLog] = {}
        """By (topic, partition); not to be changed by others."""
        self._manager = manager
        self._throttle = Throttle(
            manager.services.clock,
            lambda: float(manager.config["replica.alter.log.dirs.io.max.bytes.per.second"]),
        )
        self._begun: list[FutureLog] = []
        self._changed = trio.Event()
        self._deciding = trio.Lock()

    def futures_in(self, log_dir: LogDir) -> list[FutureLog]:
        return [future for future in self.futures.values() if future.log_dir is log_dir]

    # Beginning and giving up

    async def move(self, log: Log, target: LogDir) -> None:
        """Has a log moved to another dir; to the one it is in means: not any more. Returns when that has begun.

        A move to a third dir is given up. Raises KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION.
        """
        key = log.key
        async with self._deciding:
            log.check_usable()
            future = self.futures.get(key)
            if future is not None and future.log_dir is not target:
                await self.give_up([key])
                future = None
            if future is not None or log.log_dir is target:
                return
            if target.id in self._manager.doubtful:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{log.name} is not moved to {target.path}, which was no log directory at the last start while "
                    "another one is missing: it may be what lies below a volume that is not mounted",
                )
            offline = ", ".join(log_dir.path for log_dir in self._manager.dirs if not log_dir.online)
            if offline:  # there might be another future log of the partition
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"Can't create the future log of {log.name} because log directories {offline} are offline",
                )
            await self._begin(log, target)

    async def _begin(self, log: Log, target: LogDir) -> None:
        from kwire.storage.moving import copying

        manager, key = self._manager, log.key
        folder = target.file(layout.future_dir_name(*key, manager.services.randomness.uuid()))
        await manager.upkeep.forget(target, {key})
        await manager.guarded(target, copying.begin, manager.services.files, folder, log.topic_id)
        if manager.logs.get(key) is not log:
            manager.remove_later(target, folder, 0)
            log.check_usable()
        else:
            self.take_up(FutureLog(log, target, folder))

    def take_up(self, future: FutureLog) -> None:
        """Begins a move, or goes on with one that an earlier run of the broker began."""
        log = future.source
        logger.info("moving %s from %s to %s", log.name, log.log_dir.path, future.log_dir.path)
        self.futures[log.key] = future
        self._begun.append(future)
        self._changed.set()

    def take_away(self, partitions: Iterable[TopicPartition]) -> list[FutureLog]:
        """Ends the moves of these partitions; the future logs are the caller's, each once it is `idle`."""
        gone = [future for key in partitions if (future := self.futures.pop(key, None)) is not None]
        for future in gone:
            future.log_dir.high_watermarks.note(future.key)
            future.scope.cancel()
        return gone

    async def give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """Ends the moves of these partitions and has their future logs removed. Raises KAFKA_STORAGE_ERROR."""
        with trio.CancelScope(shield=True):
            for future in self.take_away(partitions):
                await self.remove(future)

    async def remove(self, future: FutureLog) -> None:
        """Has a future log removed that was taken away. Raises KAFKA_STORAGE_ERROR."""
        manager, target = self._manager, future.log_dir
        await future.idle.wait()
        if target.online:
            unique = manager.services.randomness.uuid()
            renamed = target.file(layout.renamed_dir_name(*future.key, unique, layout.DELETE_DIR))
            await manager.upkeep.forget(target, {future.key})
            await manager.guarded(target, manager.services.files.rename, future.dir, renamed)
            manager.remove_later(target, renamed, future.source.config.file_delete_delay_ms)

    def dir_failed(self, log_dir: LogDir) -> None:
        """Ends the moves from and to a dir that failed; what is copied is left to the next start."""
        for key, future in list(self.futures.items()):
            if future.log_dir is log_dir:
                del self.futures[key]
                future.scope.cancel()
            elif future.source.log_dir is log_dir:
                future.source_gone = True
                future.scope.cancel()

    # Moving

    async def run(self) -> None:
        """Moves what is to be moved, until cancelled."""
        manager = self._manager
        places = trio.Semaphore(max(1, manager.config["num.replica.alter.log.dirs.threads"] or len(manager.dirs)))
        async with trio.open_nursery() as nursery:
            while True:
                begun, self._begun = self._begun, []
                for future in begun:
                    nursery.start_soon(self._run_one, future, places)
                self._changed = trio.Event()
                await self._changed.wait()

    async def _run_one(self, future: FutureLog, places: trio.Semaphore) -> None:
        with future.scope:
            async with places:
                future.idle = trio.Event()
                try:
                    await self._move(future)
                finally:
                    future.idle.set()

    async def _move(self, future: FutureLog) -> None:
        from kwire.storage.moving.move import Move, MoveEnded

        name, to = future.source.name, future.log_dir.path
        try:
            left = await Move(self._manager, future, self._throttle).run()
        except MoveEnded:
            logger.info("move of %s to %s given up, since there is nothing to move any more", name, to)
        except CorruptBatchError as error:
            logger.error("%s can't be moved to %s: %s", name, to, error)
        except KafkaError as error:
            logger.info("move of %s to %s failed: %s", name, to, error)  # the dir that failed tells so itself
        except Exception:
            logger.exception("move of %s to %s failed", name, to)
        else:
            logger.info("moved %s from %s to %s", name, left.path, to)
