"""OffsetForLeaderEpoch: ends of epochs, fencing, and who is answered."""

from __future__ import annotations

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.scene import Scene, running

CONSUMER, DEBUGGER = -1, -2

Told = list[tuple[int, int, int, int]]
"""(partition, error code, leader epoch, end offset)"""


async def ask(
    scene: Scene,
    *asked: tuple[int, int],
    topic: str = "t",
    current: int = -1,
    replica_id: int = CONSUMER,
    version: int = 4,
) -> Told:
    """Asks for the ends of epochs: (partition, epoch)."""
    partitions = [
        OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        for partition, epoch in asked
    ]
    request = OffsetForLeaderEpochRequest(
        replica_id=replica_id, topics=[OffsetForLeaderTopic(topic=topic, partitions=partitions)]
    )
    (told,) = (await scene.call(request, version)).topics
    assert told.topic == topic
    return [(each.partition, each.error_code, each.leader_epoch, each.end_offset) for each in told.partitions]


async def two_epochs(scene: Scene) -> None:
    """Three records of epoch 0, two of epoch 1."""
    await scene.create("t")
    await scene.produce("t", *[b"v"] * 3)
    await scene.place("t", 1)
    await scene.produce("t", *[b"v"] * 2)


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_ends_of_epochs(version: int, autojump_clock) -> None:
    async with running() as scene:
        await two_epochs(scene)
        told = await ask(scene, (0, 0), (0, 1), (0, 7), (0, -1), version=version)
        assert told == [(0, 0, 0, 3), (0, 0, 1, 5), (0, 0, -1, -1), (0, 0, -1, -1)]


@pytest.mark.parametrize("version", [2, 4])
async def test_the_leader_epoch_that_a_client_believes_in(version: int, autojump_clock) -> None:
    async with running() as scene:
        await two_epochs(scene)
        found = {current: await ask(scene, (0, 0), current=current, version=version) for current in (-1, 0, 1, 2)}
        assert found == {
            -1: [(0, 0, 0, 3)],
            0: [(0, ErrorCode.FENCED_LEADER_EPOCH, -1, -1)],
            1: [(0, 0, 0, 3)],
            2: [(0, ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)],
        }


async def test_partitions_and_topics_that_do_not_exist(autojump_clock) -> None:
    async with running() as scene:
        await two_epochs(scene)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await ask(scene, (1, 0), (0, 0), (-1, 0)) == [
            (1, missing, -1, -1),
            (0, 0, 0, 3),
            (-1, missing, -1, -1),
        ]
        for name in ("absent", "", "bad name"):
            assert await ask(scene, (0, 0), topic=name) == [(0, missing, -1, -1)]
        assert await ask(scene) == []


@pytest.mark.parametrize(("version", "replica_id"), [(2, DEBUGGER), (4, DEBUGGER), (4, CONSUMER), (4, 2)])
async def test_only_a_leader_answers(version: int, replica_id: int, autojump_clock) -> None:
    """A debugger too, though ListOffsets makes an exception for him: the oldest version does not say who asks."""
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", *[b"v"] * 3)
        await scene.place("t", 2, 1)
        told = await ask(scene, (0, 0), replica_id=replica_id, version=version)
        assert told == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)]
