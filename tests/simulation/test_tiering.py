"""Tiered storage on virtual time: kills at any system call, power cuts, an object store that fails in all ways.

Whatever happens: what was acknowledged is read once and in order, and in the end the store has what the records of
`__remote_log_metadata` tell of, and nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import trio
import trio.testing

from kwire.broker.broker import Broker
from kwire.client.connection import Connection
from kwire.client.errors import ClientError
from kwire.config.broker import BrokerConfig
from kwire.ports.clock import TrioClock
from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.randomness import SeededRandomness
from kwire.ports.simulated_disk import Killed, SimulatedDisk, kill_at
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.remote.faults import Kind, RandomFaults
from kwire.remote.memory import MemoryObjectStore
from kwire.storage.tiered.remote_segment import SegmentState
from tests.broker.scene import HOST, PORT, Scene, memory_ports
from tests.broker.tiered.support import SETTINGS, TIERED, fill, read_all, until

LIVES = 6
FAULTS = {
    Kind.UNAVAILABLE: 8,
    Kind.TIMEOUT: 4,
    Kind.TORN: 4,
    Kind.LOST_ANSWER: 8,
    Kind.SLOW: 10,
}
"""Percent of the calls of the store."""


class World:
    """What outlives a broker."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.disk = SimulatedDisk(TrioClock(), seed=seed)
        self.objects = MemoryObjectStore(TrioClock())
        self.acknowledged: list[bytes] = []
        self.sent = 0

    async def live(self, life: Callable[[Scene], Awaitable[None]], *, power_cut: bool = False) -> bool:
        """One life of a broker, which a kill may end, at its start too; whether none did.

        With `power_cut`, what was not on the disk at its end may be lost.
        """
        network = MemoryNetwork()
        settings = {**SETTINGS, "listeners": f"PLAINTEXT://{HOST}:{PORT}", "log.dirs": "data"}
        broker = Broker(
            BrokerConfig(settings),
            memory_ports(network, self.disk, seed=self.draw.randrange(1 << 30)),  # type: ignore[arg-type]
            objects=self.objects,
        )
        killed = False
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(broker.run)
                connection = await Connection.open(network.transport("client"), HOST, PORT)
                await life(Scene(broker, network, self.disk, connection))  # type: ignore[arg-type]
                connection.close()
                broker.stop(1.0)
        except* Killed:
            killed = True
        if power_cut:
            self.disk.cut_power()
        else:
            self.disk.restart()
        return not killed

    async def produce(self, scene: Scene, batches: int) -> None:
        for _ in range(batches):
            values = [f"{self.sent + number:06d}".encode() * 15 for number in range(3)]
            self.sent += 3
            with suppress(ClientError):
                if (await scene.produce("t", *values)).error_code == 0:
                    self.acknowledged += values
            await trio.sleep(self.draw.random() * 0.5)


@pytest.mark.parametrize("power_cut", [False, True], ids=["kill", "power cut"])
@pytest.mark.parametrize("seed", range(6))
async def test_nothing_acknowledged_is_lost_and_nothing_is_left_over(
    seed: int, power_cut: bool, autojump_clock: trio.testing.MockClock
) -> None:
    world = World(seed)

    async def first(scene: Scene) -> None:
        await scene.create("t", **TIERED, flush_messages="1")

    async def hard(scene: Scene) -> None:
        await world.produce(scene, 40)
        await trio.sleep(10)

    async def last(scene: Scene) -> None:
        await world.produce(scene, 10)
        log = scene.log("t")
        await until(lambda: log.tiered_end_offset == log.segments.active.base_offset)
        await trio.sleep(60)
        values = [value for _, value in await read_all(scene, "t")]
        assert values == sorted(set(values))
        assert set(world.acknowledged) <= set(values)
        await check_store(world, scene)

    assert await world.live(first)
    for _ in range(LIVES):
        world.objects.faults = RandomFaults(SeededRandomness(world.draw.randrange(1 << 30)), FAULTS, most_seconds=3)
        world.disk.fault = kill_at(world.draw.randint(1, 600), world.draw.random())
        await world.live(hard, power_cut=power_cut)
    world.objects.faults = None
    assert await world.live(last)
    assert len(world.acknowledged) > 100


async def check_store(world: World, scene: Scene) -> None:
    """The store has the objects of the segments that are told of, and these do not overlap."""
    tiering = scene.broker.tiering
    assert tiering is not None
    told: set[str] = set()
    reached = -1
    for of, segments in tiering.known():
        for segment in segments:
            assert segment.state is SegmentState.COPY_SEGMENT_FINISHED
            assert segment.start_offset == reached + 1
            reached = segment.end_offset
            told.update(segment.keys(of))
    there = {found.key async for found in world.objects.list("")}
    assert there <= told
    assert {key for key in told if key.endswith(".log")} <= there


async def test_a_deletion_survives_kills_and_faults(autojump_clock: trio.testing.MockClock) -> None:
    world = World(99)

    async def fill_and_delete(scene: Scene) -> None:
        await scene.create("t", **TIERED)
        await fill(scene, "t", 40)
        await until(lambda: scene.log("t").tiered_end_offset > 60)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
        assert (await scene.call(request)).responses[0].error_code == 0
        world.disk.fault = kill_at(world.disk.calls + 3)
        await trio.sleep(5)

    async def wait(scene: Scene) -> None:
        await trio.sleep(5)

    async def last(scene: Scene) -> None:
        await trio.sleep(60)
        assert [found.key async for found in world.objects.list("")] == []
        assert scene.broker.tiering is not None
        assert list(scene.broker.tiering.known()) == []

    assert not await world.live(fill_and_delete)
    for _ in range(3):
        world.objects.faults = RandomFaults(SeededRandomness(world.draw.randrange(1 << 30)), FAULTS, most_seconds=3)
        world.disk.fault = kill_at(world.draw.randint(40, 120))
        await world.live(wait)
    world.objects.faults = None
    assert await world.live(last)
