"""All partitions of one internal topic that this broker leads.

coordinator = Coordinator("group", make_machine, codec, clock, …)
async with trio.open_nursery() as nursery:
    nursery.start_soon(coordinator.run)                 deadlines
    coordinator.lead(index, log)                        this broker leads a partition
    await coordinator.shard_of("my-group").write(operation)
    coordinator.resign(index)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

import trio

from kwire.coordinator.runtime.log import CoordinatorLog
from kwire.coordinator.runtime.machine import StateMachine
from kwire.coordinator.runtime.shard import Shard
from kwire.coordinator.runtime.wakes import Wakes
from kwire.protocol.errors import ErrorCode, KafkaError

M = TypeVar("M", bound=StateMachine)

logger = logging.getLogger(__name__)


class Coordinator(Generic[M]):
    """Finds the shard of a key, loads shards as leadership comes, and runs their deadlines."""

    def __init__(self, name: str, make_shard: Callable[[int, CoordinatorLog], Shard[M]]) -> None:
        """`make_shard(index, log)` makes the shard of a partition, not yet loaded."""
        self.name = name
        self.shards: dict[int, Shard[M]] = {}
        """By partition of the internal topic; those being loaded too. Not to be changed by others."""
        self.partitions = 0
        """How many partitions the internal topic has; 0 while there is none."""
        self._make_shard = make_shard
        self._wakes = Wakes()
        self._loading: list[Shard[M]] = []
        self._loader = trio.Lock()
        """One shard is loaded at a time, which bounds the memory that it takes."""
        self._wake = trio.Event()
        self._wake_at = float("-inf")

    def lead(self, index: int, log: CoordinatorLog) -> None:
        """This broker leads the partition from now on (in a newer leader epoch, if it did before): loads it.

        An empty one serves at once.
        """
        self.resign(index)
        shard = self.shards[index] = self._make_shard(index, log)
        shard.machine.deadlines.on_sooner = self._sooner
        shard.wakes = self._wakes
        if log.start == log.end:
            shard.serve()
        else:
            self._loading.append(shard)
            self._wake.set()

    def resign(self, index: int) -> None:
        """This broker does not lead the partition any more. Does nothing where it did not."""
        shard = self.shards.pop(index, None)
        if shard is not None:
            shard.close()

    def partition_of(self, key: str) -> int:
        """The partition that keeps a group's or transactional id's state, as Kafka computes it.

        Raises COORDINATOR_NOT_AVAILABLE while the internal topic does not exist.
        """
        if not self.partitions:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return partition_of(key, self.partitions)

    def shard_of(self, key: str) -> Shard[M]:
        """Raises NOT_COORDINATOR where another broker leads that partition, or the internal topic does not exist."""
        shard = self.shards.get(partition_of(key, self.partitions)) if self.partitions else None
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return shard

    def close(self) -> None:
        """Resigns from everything."""
        for index in list(self.shards):
            self.resign(index)

    async def run(self) -> None:
        """Loads shards, runs deadlines and wakes those who wait, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._wakes.run)
            while True:
                self._wake = trio.Event()
                loading, self._loading = self._loading, []
                for shard in loading:
                    nursery.start_soon(self._load, shard)
                soonest = self._soonest()
                self._wake_at = float("inf") if soonest is None else soonest
                if soonest is None:
                    await self._wake.wait()
                    continue
                now_ms = next(iter(self.shards.values())).now().ms
                with trio.move_on_after(max(soonest - now_ms, 0) / 1000):
                    await self._wake.wait()
                await self._run_due()

    async def _run_due(self) -> None:
        for shard in list(self.shards.values()):
            next_ms = shard.machine.deadlines.next_ms()
            if shard.active and next_ms is not None and next_ms <= shard.now().ms:
                await shard.run_due(shard.now().ms)
                await trio.lowlevel.checkpoint()  # each may have looked through all it has

    def _soonest(self) -> int | None:
        times = [shard.machine.deadlines.next_ms() for shard in self.shards.values() if shard.active]
        return min((time for time in times if time is not None), default=None)

    async def _load(self, shard: Shard[M]) -> None:
        try:
            async with self._loader:
                await shard.load()
        except KafkaError as error:
            logger.error("%s coordinator could not load log=%r error=%s", self.name, shard.log, error)
        except Exception:
            logger.exception("%s coordinator could not load log=%r", self.name, shard.log)

    def _sooner(self, at_ms: int) -> None:
        if at_ms < self._wake_at:
            self._wake_at = at_ms
            self._wake.set()


def partition_of(key: str, partitions: int) -> int:
    """The absolute value of Java's `String.hashCode` of the key (0 for the least int), modulo `partitions`."""
    value = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    if value >= 0x80000000:
        value = (0x100000000 - value) & 0x7FFFFFFF
    return value % partitions
