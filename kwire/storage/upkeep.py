"""What a LogManager does at intervals: retention, flushes, checkpoints, cutting reserves, forgetting idle producers.

    retention                       log.retention.check.interval.ms
    flush.ms of a topic             looked for every log.flush.scheduler.interval.ms, or every second, where one has it
    recovery points                 log.flush.offset.checkpoint.interval.ms
    log start offsets               log.flush.start.offset.checkpoint.interval.ms
    high watermarks                 replica.high.watermark.checkpoint.interval.ms
    reserves                        where nothing was appended for a second or two
    idle producers                  producer.id.expiration.check.interval.ms

A checkpoint file that would say what it says already is not written: an idle broker leaves the disk alone.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

import trio

from kwire.config.definition import MAX_LONG
from kwire.ports.turns import Turn
from kwire.protocol.errors import KafkaError
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir
from kwire.storage.moving.future import FutureLog
from kwire.storage.register import Register
from kwire.storage.segment import Segment

if TYPE_CHECKING:
    from kwire.storage.manager import LogManager

logger = logging.getLogger(__name__)

Kept = Log | FutureLog
"""What a checkpoint speaks of."""

_FLUSH_LOOK_MS = 1000
"""The longest between two looks at the logs for those that are due by flush.ms."""

_FLUSH_PAUSE_MS = 10
"""The shortest, whatever flush.ms is: a look at thousands of logs takes about a millisecond. (So those that have none
are not looked at.)"""

_RESERVE_LOOK_MS = 1000
"""Between two looks at the reserves of segments: one that did not grow in between has its reserve cut."""


class Upkeep:
    """The loops of one manager."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self._reserved: dict[Segment, int] = {}
        """The size that a segment with a reserve had at the last look."""

    async def run(self) -> None:
        """Runs all loops until cancelled."""
        config, services = self._manager.config, self._manager.services
        loops: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("log.retention.check.interval.ms", self.delete_old_segments),
            ("log.flush.offset.checkpoint.interval.ms", self.write_recovery_points),
            ("log.flush.start.offset.checkpoint.interval.ms", self.write_log_start_offsets),
            ("replica.high.watermark.checkpoint.interval.ms", self.write_high_watermarks),
            ("producer.id.expiration.check.interval.ms", self.remove_expired_producers),
        ]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._repeat_for, services.flushed_by_time, self._flush_pause_ms, self.flush_due)
            nursery.start_soon(self._repeat_for, services.reserving, lambda: _RESERVE_LOOK_MS, self.cut_reserves)
            for key, work in loops:
                nursery.start_soon(self._repeat, partial(config.__getitem__, key), work)

    async def _repeat(self, pause_ms: Callable[[], int], work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._after(pause_ms(), work)

    async def _repeat_for(
        self, register: Register, pause_ms: Callable[[], int], work: Callable[[], Awaitable[None]]
    ) -> None:
        """While there are logs that it concerns."""
        while True:
            await register.wait_occupied()
            await self._after(pause_ms(), work)

    async def _after(self, pause_ms: int, work: Callable[[], Awaitable[None]]) -> None:
        """What goes wrong is logged, and keeps neither this work nor the others from their next turn."""
        await trio.sleep(pause_ms / 1000)
        try:
            await work()
        except Exception:
            logger.exception("the storage's upkeep failed, and goes on at its next turn")

    # Retention, producers

    async def delete_old_segments(self) -> None:
        now_ms = self._manager.services.clock.wall_ms()
        for log in list(self._manager.logs.values()):
            await trio.lowlevel.checkpoint()
            if self._manager.cleaner.cleans(log):
                continue  # a cleaning whose segments go is void; it sees to this itself when it has ended
            await self._tolerantly(log, log.delete_old_segments, now_ms)

    async def remove_expired_producers(self) -> None:
        now_ms = self._manager.services.clock.wall_ms()
        turn = Turn(self._manager.services.clock)
        for log in list(self._manager.logs.values()):
            log.producer_state.remove_expired(now_ms)
            await turn.share()

    # Flushing

    def _flush_pause_ms(self) -> int:
        """How long until the logs are looked at for those that are due by flush.ms."""
        scheduled_ms: int = self._manager.config["log.flush.scheduler.interval.ms"]
        timed = self._manager.services.flushed_by_time
        # A list, since each element of a generator costs a call, and there may be thousands of logs.
        shortest = min([log.config.flush_ms for log in timed], default=MAX_LONG)
        return max(min(shortest, scheduled_ms, _FLUSH_LOOK_MS), _FLUSH_PAUSE_MS)

    async def flush_due(self) -> None:
        """Flushes the logs whose last flush was flush.ms ago or longer."""
        now = self._manager.services.clock.monotonic()
        timed = self._manager.services.flushed_by_time
        for log in timed:
            if (now - log.last_flush) * 1000 >= log.config.flush_ms and log.unflushed and log in timed:
                await self._tolerantly(log, log.flush)

    async def cut_reserves(self) -> None:
        """Cuts the reserves of segments that have not grown since the last look: their files are as long as they."""
        before, self._reserved = self._reserved, {}
        turn = Turn(self._manager.services.clock)
        reserving = self._manager.services.reserving
        for log in reserving:
            active = log.segments.active
            if log not in reserving:  # it was deleted meanwhile, or its dir failed
                continue
            if not active.reserve_end:
                reserving.discard(log)
            elif before.get(active) == active.size:
                await self._tolerantly(log, _cut_reserve, log)
            else:
                self._reserved[active] = active.size
            await turn.share()
        if not reserving:  # the next look may be long in coming
            self._reserved = {}

    async def _tolerantly(self, log: Log, work: Callable[..., Awaitable[object]], *arguments: object) -> None:
        """Does what a failure of one log must not keep from the others.

        Of a log dir that failed its own line tells, and of a log that was deleted meanwhile there is nothing to tell.
        """
        try:
            await work(*arguments)
        except KafkaError as error:
            if log.log_dir.online and not log.deleted:
                logger.warning("%s: %s", log.name, error)

    # Checkpoints

    async def checkpoint_dir(self, log_dir: LogDir) -> None:
        """Writes all three checkpoints of a dir."""
        await self._write(log_dir, layout.RECOVERY_POINTS, _recovery_points)
        await self._write(log_dir, layout.LOG_START_OFFSETS, _log_start_offsets)
        await self._write_high_watermarks(log_dir)

    async def write_recovery_points(self) -> None:
        await self._write_all(layout.RECOVERY_POINTS, _recovery_points)

    async def write_log_start_offsets(self) -> None:
        await self._write_all(layout.LOG_START_OFFSETS, _log_start_offsets)

    async def write_high_watermarks(self) -> None:
        """Looks at those that moved, and others have their turns meanwhile: there may be thousands, every few seconds.

        (Not so with recovery points: a start goes by when their file was written, as if it said what was true then.)
        """
        for log_dir in self._manager.online_dirs:
            await self._write_high_watermarks(log_dir)

    async def _write_high_watermarks(self, log_dir: LogDir, gone: Collection[TopicPartition] | None = None) -> None:
        """With `gone`, only if the checkpoint speaks of one of them."""
        async with log_dir.writing:
            watermarks = log_dir.high_watermarks
            if not log_dir.online or (gone is not None and not watermarks.mentions(gone)):
                return
            turn = Turn(self._manager.services.clock)
            for partition in gone or ():
                watermarks.note(partition)
            await self._look_at_noted(log_dir, turn)
            if watermarks.due:
                data = await watermarks.encoded(turn)
                await self._put(log_dir, layout.HIGH_WATERMARKS, log_dir.write_high_watermarks, data)
            if log_dir.online:
                watermarks.settle()

    async def _look_at_noted(self, log_dir: LogDir, turn: Turn) -> None:
        watermarks, logs, futures = log_dir.high_watermarks, self._manager.logs, self._manager.moves.futures
        noted = watermarks.take_noted()
        noted += [future.key for future in self._manager.moves.futures_in(log_dir)]
        seen = 0
        try:
            for key in noted:
                log, future = logs.get(key), futures.get(key)
                if log is not None and log.log_dir is log_dir:
                    log.high_watermark_noted = False
                    watermarks.put(key, log.high_watermark)
                elif future is not None and future.log_dir is log_dir:
                    watermarks.put(key, future.high_watermark)
                else:
                    watermarks.remove(key)
                seen += 1
                await turn.share()
        finally:
            for key in noted[seen:]:  # it was cancelled
                watermarks.note(key)

    async def forget(self, log_dir: LogDir, gone: Collection[TopicPartition]) -> None:
        """Sees to it that no checkpoint speaks of partitions that were deleted: new ones may take their names."""
        for name, offsets in (
            (layout.RECOVERY_POINTS, _recovery_points),
            (layout.LOG_START_OFFSETS, _log_start_offsets),
        ):
            await self._write(log_dir, name, offsets, gone)
        await self._write_high_watermarks(log_dir, gone)
        cleaned = layout.CLEANER_OFFSETS
        await self._write(log_dir, cleaned, lambda logs: _without(log_dir.checkpoint(cleaned), gone), gone)

    async def note_cleaned(self, log_dir: LogDir, partition: TopicPartition, offset: int) -> None:
        """The checkpoint says from now on that the partition is clean up to `offset` (exclusive)."""
        name = layout.CLEANER_OFFSETS
        await self._write(log_dir, name, lambda kept: {**log_dir.checkpoint(name), partition: offset})

    async def _write_all(self, name: str, offsets: Callable[[list[Kept]], dict[TopicPartition, int]]) -> None:
        for log_dir in self._manager.online_dirs:
            await self._write(log_dir, name, offsets)

    async def _write(
        self,
        log_dir: LogDir,
        name: str,
        offsets: Callable[[list[Kept]], dict[TopicPartition, int]],
        gone: Collection[TopicPartition] | None = None,
    ) -> None:
        """Writes a checkpoint if it does not say the same already; with `gone`, only if it speaks of one of them."""
        async with log_dir.writing:
            if not log_dir.online or (gone is not None and not log_dir.mentions(name, gone)):
                return
            content = offsets(self._manager.kept_in(log_dir))
            if not log_dir.says(name, content):
                await self._put(log_dir, name, log_dir.write_checkpoint, name, content)

    async def _put(self, log_dir: LogDir, name: str, write: Callable[..., None], *arguments: object) -> None:
        """For who has its `writing`."""
        if not log_dir.online:
            return
        try:
            await self._manager.services.executor.run(write, *arguments)
        except OSError as error:
            log_dir.fail(f"write of {name} failed", error)


async def _cut_reserve(log: Log) -> None:
    log.check_usable()
    try:
        log.segments.active.cut_reserve()
    except OSError as error:
        raise log.failed("cut", error) from error


def _without(offsets: Mapping[TopicPartition, int], gone: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    return {partition: offset for partition, offset in offsets.items() if partition not in gone}


def _recovery_points(logs: list[Kept]) -> dict[TopicPartition, int]:
    return {log.key: log.recovery_point for log in logs}


def _log_start_offsets(logs: list[Kept]) -> dict[TopicPartition, int]:
    """Only of logs that begin amid a segment, or may begin in remote storage: else the first segment's name says it."""
    return {
        log.key: log.log_start_offset
        for log in logs
        if log.log_start_offset and (log.tiered or log.log_start_offset != log.segments.first.base_offset)
    }
