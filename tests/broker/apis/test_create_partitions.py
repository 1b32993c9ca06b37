"""CreatePartitions: counts, places by hand, topics named twice, validating only."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.broker.scene import Scene, running


def more(name: str, count: int, by_hand: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
    """`count` is the new total."""
    assignments = None
    if by_hand is not None:
        assignments = [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in by_hand]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


async def grow(
    scene: Scene, *topics: CreatePartitionsTopic, version: int = 3, validate_only: bool = False
) -> list[tuple[str, int, str | None]]:
    """(topic, error code, message)"""
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=1000, validate_only=validate_only)
    results = (await scene.call(request, version)).results
    return [(result.name, result.error_code, result.error_message) for result in results]


def size(scene: Scene, topic: str) -> int:
    return len(scene.broker.store.image.topics[topic].partitions)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("by_hand", [None, [[1], [1]]])
async def test_partitions_are_added_and_can_be_used(
    version: int, by_hand: list[list[int]] | None, autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("t")
        for validate_only in (True, False):
            told = await grow(scene, more("t", 3, by_hand), version=version, validate_only=validate_only)
            assert told == [("t", 0, None)]
            assert size(scene, "t") == (1 if validate_only else 3)
        assert (await scene.produce("t", b"v", partition=2)).error_code == 0


REFUSALS: list[tuple[CreatePartitionsTopic, ErrorCode, str | None]] = [
    (more("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
    (
        more("t", 1),
        ErrorCode.INVALID_PARTITIONS,
        "The topic t currently has 2 partition(s); 1 would not be an increase.",
    ),
    (
        more("t", -1),
        ErrorCode.INVALID_PARTITIONS,
        "The topic t currently has 2 partition(s); -1 would not be an increase.",
    ),
    (more("absent", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    (
        more("t", 3, []),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
    ),
    (
        more("t", 3, [[7]]),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 7, but no such broker is registered.",
    ),
]


@pytest.mark.parametrize(("asked", "code", "message"), REFUSALS)
async def test_a_bad_topic_does_not_harm_the_others(
    asked: CreatePartitionsTopic, code: ErrorCode, message: str | None, autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        await scene.create("u")
        refused, grown = await grow(scene, asked, more("u", 2))
        assert refused == (asked.name, code, message)
        assert grown == ("u", 0, None)
        assert (size(scene, "t"), size(scene, "u")) == (2, 2)


async def test_topics_named_twice_do_not_grow(autojump_clock) -> None:
    """They are told once, at the beginning."""
    async with running() as scene:
        for name in ("t", "u"):
            await scene.create(name)
        told = await grow(scene, more("u", 2), more("t", 3), more("t", 4))
        assert told == [("t", ErrorCode.INVALID_REQUEST, "Duplicate topic name."), ("u", 0, None)]
        assert (size(scene, "t"), size(scene, "u")) == (1, 2)


async def test_who_may_not_alter(autojump_clock) -> None:
    """Who names a topic twice is told that, whatever he may do."""
    async with running() as scene:
        for name in ("t", "u"):
            await scene.create(name)
        await scene.allow()
        told = await grow(scene, more("t", 2), more("u", 2), more("t", 3))
        assert sorted(told) == [
            ("t", ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
            ("u", ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
        ]
        assert (size(scene, "t"), size(scene, "u")) == (1, 1)
