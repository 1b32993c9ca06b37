"""Cleans the compacted logs of a broker, the dirtiest first.

A log that cannot be cleaned is told of once and left alone until the broker restarts: it grows, but it can be read and
written as before. One that its volume has too little room to clean waits for more. How far each log was cleaned stands
in its dir's `cleaner-offset-checkpoint`. What cleans is imported when there is something to clean, which keeps the
start short.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from kwire.ports.turns import Turn
from kwire.ports.workers import WorkerDied
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.header import HEADER_SIZE
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.cleaning.cleanable import Cleanable, look
from kwire.storage.cleaning.crew import Crew
from kwire.storage.cleaning.shortages import Shortages
from kwire.storage.log import Log
from kwire.storage.throttle import Throttle

if TYPE_CHECKING:
    from kwire.storage.cleaning.work import CleanerSettings
    from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)

_SHORTEST_BACKOFF_MS = 10
_ATTEMPTS = 3
"""How often a log's worker may end amid its work before the log counts as one that can't be cleaned."""


class LogCleaner:
    """The cleaners of one manager. For the event loop's thread."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self._throttle = Throttle(
            manager.services.clock, lambda: float(manager.config["log.cleaner.io.max.bytes.per.second"])
        )
        self._crew = Crew(manager.services)
        self._cleaned: set[TopicPartition] = set()
        """Being cleaned now."""
        self._deaths: dict[TopicPartition, tuple[Log, int]] = {}
        """How many workers in a row ended amid a log's cleaning."""
        self._uncleanable: dict[TopicPartition, Log] = {}
        self._shortages = Shortages(manager.services.clock)
        self._one_done = trio.Event()

    async def run(self) -> None:
        """Cleans until cancelled."""
        if not self._manager.config["log.cleaner.enable"]:
            return
        try:
            await self._run()
        finally:
            await self._crew.dismiss()

    async def _run(self) -> None:
        async with trio.open_nursery() as nursery:
            while True:
                self._one_done = trio.Event()
                config = self._manager.config
                while len(self._cleaned) < config["log.cleaner.threads"]:
                    dirtiest = await self.dirtiest()
                    if dirtiest is None:
                        break
                    self._cleaned.add(_key(dirtiest.log))
                    nursery.start_soon(self.clean, dirtiest)
                idle_s = await self._crew.dismiss_idle()
                with trio.move_on_after(min(self._backoff_s(), idle_s)):
                    await self._one_done.wait()

    def _backoff_s(self) -> float:
        return float(max(self._manager.config["log.cleaner.backoff.ms"], _SHORTEST_BACKOFF_MS)) / 1000

    def cleans(self, log: Log) -> bool:
        """Whether it is being cleaned now."""
        return _key(log) in self._cleaned

    async def dirtiest(self) -> Cleanable | None:
        """Of the logs that are due, the one with the greatest share of dirty bytes."""
        clock = self._manager.services.clock
        now_ms, turn = clock.wall_ms(), Turn(clock)
        dirtiest = None
        self._shortages.look()
        for log in self._manager.services.compacted:
            await turn.share()
            key = _key(log)
            if not log.config.compacted or key in self._cleaned or self._uncleanable.get(key) is log:
                continue
            if key in self._manager.moves.futures:  # its copy would be void
                continue
            if self._shortages.lasts(log):
                continue
            checkpoint = log.log_dir.checkpoint(layout.CLEANER_OFFSETS).get(key)
            try:
                found = await look(log, checkpoint, now_ms)
            except Exception as error:
                self._failed(log, error)
                continue
            if checkpoint is not None and checkpoint > found.first_dirty_offset and not log.version:
                # It was beyond the log's end at the start (a truncation lowers it itself): what comes there is dirty.
                await self._note(found, found.first_dirty_offset)
            if found.due and (dirtiest is None or found.ratio > dirtiest.ratio):
                dirtiest = found
        return dirtiest

    async def clean(self, cleanable: Cleanable) -> None:
        """Cleans a log and notes how far; what keeps it from that is logged."""
        await self._manager.services.executor.run(_load)
        from kwire.storage.cleaning.cleaning import Cleaning, CleaningAborted, Uncleanable

        log = cleanable.log
        try:
            async with self._crew.worker() as worker:
                done = await Cleaning(cleanable, self._settings(), self._throttle, worker).run()
            self._deaths.pop(_key(log), None)
            if done.lack is None:
                self._shortages.end(log)
            else:
                self._shortages.begin(log, done.lack)
            if done.lack is None or done.end_offset > cleanable.first_dirty_offset:
                await self._note(cleanable, done.end_offset)
            await log.delete_old_segments(self._manager.services.clock.wall_ms())
        except CleaningAborted:
            logger.info("cleaning of %s given up, since the log was changed meanwhile", log.name)
        except Uncleanable as error:
            self._give_up(log, error)
        except WorkerDied as error:
            await self._worker_died(log, error)
        except Exception as error:
            self._failed(log, error)
        else:
            if done.lack is None or done.bytes_before:
                logger.info(
                    "cleaned %s up to offset %d: %d bytes are left of %d",
                    log.name,
                    done.end_offset,
                    done.bytes_after,
                    done.bytes_before,
                )
        finally:
            self._cleaned.discard(_key(log))
            self._one_done.set()

    def _settings(self) -> CleanerSettings:
        from kwire.storage.cleaning.work import CleanerSettings

        config = self._manager.config
        threads = config["log.cleaner.threads"]
        return CleanerSettings(
            config["log.cleaner.dedupe.buffer.size"] // threads,
            config["log.cleaner.io.buffer.load.factor"],
            max(HEADER_SIZE, config["log.cleaner.io.buffer.size"] // threads // 2),
        )

    def _failed(self, log: Log, error: Exception) -> None:
        if log.deleted or not log.log_dir.online:
            return  # a dir that is offline tells so itself
        if not isinstance(error, KafkaError):
            logger.error("the cleaner failed", exc_info=error)
        self._give_up(log, error)

    async def _worker_died(self, log: Log, error: WorkerDied) -> None:
        """Nothing is lost but time; the next attempt comes after a while."""
        known, deaths = self._deaths.pop(_key(log), (log, 0))
        deaths = deaths + 1 if known is log else 1
        if deaths >= _ATTEMPTS:
            self._give_up(log, error)
            return
        self._deaths[_key(log)] = log, deaths
        logger.warning("cleaning of %s given up, it will be tried again: %s", log.name, error)
        await trio.sleep(self._backoff_s())

    def _give_up(self, log: Log, error: Exception) -> None:
        logger.error("%s can't be compacted, and is left alone until the broker restarts: %s", log.dir, error)
        self._uncleanable = {key: left for key, left in self._uncleanable.items() if not left.deleted}
        self._uncleanable[_key(log)] = log

    async def _note(self, cleaned: Cleanable, offset: int) -> None:
        log, log_dir = cleaned.log, cleaned.log.log_dir
        async with log_dir.writing:
            if log.deleted or not log_dir.online or log.version != cleaned.version:
                return  # after a truncation, what comes up to that offset is dirty
            offsets = {**log_dir.checkpoint(layout.CLEANER_OFFSETS), _key(log): offset}
            try:
                await self._manager.services.executor.run(log_dir.write_checkpoint, layout.CLEANER_OFFSETS, offsets)
            except OSError as error:
                log_dir.fail(f"write of {layout.CLEANER_OFFSETS} failed", error)


def _load() -> None:
    """Imports what cleans. For a worker thread: for the first time it takes ten milliseconds."""
    import kwire.storage.cleaning.cleaning  # noqa: F401


def _key(log: Log) -> TopicPartition:
    return log.topic, log.partition
