"""DescribeProducers: what a partition remembers of its idempotent producers."""

from __future__ import annotations

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.describe_producers import DescribeProducersRequest, PartitionResponse, TopicRequest
from kwire.security.authorizer import Operation
from tests.broker.apis.test_many_groups import turns_of_another
from tests.broker.scene import Scene, running


async def ask(scene: Scene, topic: str, *partitions: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(partitions))])
    (told,) = (await scene.call(request)).topics
    assert told.name == topic
    return told.partitions


async def test_producers_with_an_id_are_told(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        await scene.produce("t", *[b"v"] * 3, producer_id=7, producer_epoch=2, base_sequence=0)
        await scene.produce("t", *[b"v"] * 2, producer_id=7, producer_epoch=2, base_sequence=3)
        await scene.produce("t", b"f", producer_id=9, producer_epoch=0, base_sequence=5)
        await scene.produce("t", b"without an id")
        first, second = await ask(scene, "t", 0, 1)
        now = scene.broker.clock.wall_ms()
        assert [
            (each.producer_id, each.producer_epoch, each.last_sequence, each.last_timestamp)
            for each in first.active_producers
        ] == [(7, 2, 4, now), (9, 0, 5, now)]
        for each in first.active_producers:
            assert (each.coordinator_epoch, each.current_txn_start_offset) == (-1, -1)
        assert (second.error_code, second.active_producers) == (0, [])


async def test_others_have_their_turn(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as scene:
        await scene.create("t")
        for producer_id in range(20):
            await scene.produce("t", b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0)
        at_once = await turns_of_another(lambda: ask(scene, "t", 0))
        monkeypatch.setattr("kwire.ports.turns.TURN_SECONDS", 0.0)
        assert await turns_of_another(lambda: ask(scene, "t", 0)) >= at_once + 20


async def test_partitions_that_do_not_exist(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        told = [(each.partition_index, each.error_code) for each in await ask(scene, "t", 1, 0, -1)]
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert told == [(1, missing), (0, 0), (-1, missing)]


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
    ],
)
async def test_topics_that_do_not_exist(topic: str, code: ErrorCode, message: str, autojump_clock) -> None:
    async with running() as scene:
        for each in await ask(scene, topic, 0, 1):
            assert (each.error_code, each.error_message, each.active_producers) == (code, message, [])


async def test_only_a_leader_tells(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.place("t", 2, 1)
        (told,) = await ask(scene, "t", 0)
        assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_who_may_not_read_is_told_nothing(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.allow(Operation.DESCRIBE)
        for topic in ("t", "absent"):
            (told,) = await ask(scene, topic, 0)
            assert told.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert told.error_message == "Topic authorization failed."
