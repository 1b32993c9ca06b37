"""A log that moves to and fro, with flush.messages=1, kills and power cuts: what was acknowledged is there, once."""

from __future__ import annotations

import random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from kwire.config.broker import BrokerConfig
from kwire.ports.executor import InlineExecutor
from kwire.ports.randomness import SeededRandomness
from kwire.ports.simulated_disk import Killed, Order, SimulatedDisk
from kwire.ports.simulated_disk.faults import kill_at
from kwire.storage.log import Log
from kwire.storage.manager import LogManager
from tests.storage.support import CLUSTER, TOPIC_ID, ManualClock, append, config, read_all

from .movers import ONE, TWO

SETTINGS = config(segment_bytes=500, flush_messages=1, file_delete_delay_ms=0)


class World:
    """Two dirs on a disk, and what was acknowledged over several lives of the broker."""

    def __init__(self, seed: int, order: Order) -> None:
        self.random = random.Random(seed)
        self.clock = ManualClock()
        self.disk = SimulatedDisk(self.clock, order=order, seed=seed)
        self.acknowledged: list[str] = []
        self.possible: list[str] = []
        """Likewise, with what was under way when a life ended."""

    def live(self) -> None:
        """One life, and how it ends."""
        if self.random.random() < 0.7:
            self.disk.fault = kill_at(self.random.randint(1, 300))
        try:
            trio.run(self._life, clock=MockClock(autojump_threshold=0))
        except BaseException:
            if not self.disk.ended:  # else nobody is there any more to whom something could happen
                raise
        if self.random.random() < 0.5:
            self.disk.cut_power()
        else:
            self.disk.restart()

    async def _life(self) -> None:
        managed = await self._start()
        log = managed.get("t", 0)
        if log is None:
            assert not self.acknowledged
            log = await managed.get_or_create("t", 0, TOPIC_ID, SETTINGS, directory=managed.dirs[0].id)
        found = [value for _, value in read_all(log)]
        assert found in (self.acknowledged, self.possible)
        self.possible = found
        if found != self.acknowledged:
            await log.flush()
            if self.disk.ended:
                raise Killed
            self.acknowledged = found
        async with trio.open_nursery() as nursery:
            nursery.start_soon(managed.moves.run)
            nursery.start_soon(managed.services.chores.run)
            for _ in range(self.random.randint(1, 25)):
                await self._step(managed, log)
            nursery.cancel_scope.cancel()
        if self.random.random() < 0.3:
            await managed.close(1)
            managed.unlock()

    async def _start(self) -> LogManager:
        seeded = SeededRandomness(self.random.randint(0, 10**9))
        managed = LogManager(self.disk, InlineExecutor(), self.clock, seeded, BrokerConfig({}), [ONE, TWO])
        await managed.lock()
        await managed.load(CLUSTER, 1, lambda topic: SETTINGS, lambda topic: TOPIC_ID)
        return managed

    async def move_two_records(self) -> None:
        managed = await self._start()
        one, two = managed.dirs
        log = await managed.get_or_create("t", 0, TOPIC_ID, SETTINGS, directory=one.id)
        await append(log, "a", "b")
        self.acknowledged = self.possible = ["a", "b"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(managed.moves.run)
            await managed.moves.move(log, two)
            while log.dir != f"{TWO}/t-0":
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    async def _step(self, managed: LogManager, log: Log) -> None:
        chosen = self.random.random()
        if chosen < 0.6:
            value = f"record {len(self.possible)} {self.random.random()}"
            self.possible = [*self.acknowledged, value]
            await append(log, value, epoch=0)
            if self.disk.ended:  # nobody hears of it any more
                raise Killed
            self.acknowledged = self.possible
            log.set_high_watermark(log.log_end_offset)
        elif chosen < 0.8:
            await managed.moves.move(log, self.random.choice(managed.dirs))
        else:
            await trio.sleep(self.random.choice((0, 0.1, 1)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), order=st.sampled_from(Order))
def test_nothing_acknowledged_is_missing(seed: int, order: Order) -> None:
    world = World(seed, order)
    for _ in range(5):
        world.live()


@pytest.mark.parametrize("order", Order)
def test_the_end_of_a_copy_is_on_the_disk_before_the_old_one_goes(order: Order) -> None:
    """A log that fits into the last piece, which is copied in the moment of the swap."""
    for seed in range(40):
        world = World(seed, order)

        trio.run(world.move_two_records, clock=MockClock(autojump_threshold=0))
        world.disk.cut_power()
        world.live()
