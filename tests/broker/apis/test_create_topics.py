"""CreateTopics: what is made, what is only checked, and what each version tells of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kwire.config.topic_keys import TOPIC_KEYS
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from kwire.security.authorizer import Operation
from tests.broker.scene import Scene, running

VERSIONS = range(2, 8)
DYNAMIC_TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5
"""Sources of configs."""


def new(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    *,
    by_hand: Sequence[tuple[int, Sequence[int]]] = (),
    **configs: str | None,
) -> CreatableTopic:
    """A topic to create (config names with '_' for '.')."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers)) for index, brokers in by_hand
        ],
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


async def create(
    scene: Scene, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=1000, validate_only=validate_only)
    return (await scene.call(request, version)).topics


def codes(results: Sequence[CreatableTopicResult]) -> list[tuple[str, int]]:
    return [(result.name, result.error_code) for result in results]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_told_of_a_new_topic(version: int, validate_only: bool, autojump_clock) -> None:
    async with running({"log.retention.bytes": "7000"}) as scene:
        asked = new("t", 3, flush_ms=" 5 ", cleanup_policy="compact, delete")
        (told,) = await create(scene, asked, version=version, validate_only=validate_only)
        assert (told.error_code, told.error_message) == (0, None)
        topic = scene.broker.store.image.topics.get("t")
        assert (topic is None) == validate_only
        assert (told.topic_id != uuids.ZERO) == (version >= 7)
        if topic is not None and version >= 7:
            assert told.topic_id == topic.id
        if version < 5:
            assert (told.num_partitions, told.replication_factor, told.configs) == (-1, -1, [])
        else:
            assert (told.num_partitions, told.replication_factor, told.topic_config_error_code) == (3, 1, 0)
            configs = {each.name: (each.value, each.config_source) for each in told.configs}
            assert list(configs) == [name for name in TOPIC_KEYS if name != "internal.segment.bytes"]
            assert configs["flush.ms"] == (" 5 ", DYNAMIC_TOPIC)  # as the request has it
            assert configs["cleanup.policy"] == ("compact, delete", DYNAMIC_TOPIC)
            assert configs["retention.bytes"] == ("7000", STATIC_BROKER)
            assert configs["segment.ms"] == ("604800000", DEFAULT)
            assert not any(each.read_only or each.is_sensitive for each in told.configs)


async def test_a_topic_can_be_used_when_the_answer_comes(autojump_clock) -> None:
    async with running() as scene:
        await create(scene, new("t", max_message_bytes="100"))
        assert (await scene.produce("t", b"v")).error_code == 0
        assert (await scene.produce("t", b"v" * 100)).error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_defaults_of_the_broker(autojump_clock) -> None:
    async with running({"num.partitions": "3"}) as scene:
        (told,) = await create(scene, new("t", -1, -1))
        assert (told.num_partitions, told.replication_factor) == (3, 1)
        assert len(scene.broker.store.image.topics["t"].partitions) == 3


async def test_partitions_placed_by_hand(autojump_clock) -> None:
    async with running() as scene:
        (told,) = await create(scene, new("t", -1, -1, by_hand=[(1, [1]), (0, [1])]))
        assert (told.error_code, told.num_partitions, told.replication_factor) == (0, 2, 1)
        assert [each.replicas for each in scene.broker.store.image.topics["t"].partitions] == [(1,), (1,)]


REFUSALS: list[tuple[CreatableTopic, ErrorCode, str]] = [
    (
        new("bad name"),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic name is invalid: 'bad name' contains one or more characters other than ASCII alphanumerics, '.', '_' "
        "and '-'",
    ),
    (new("there"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
    (
        new("t", 0),
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    ),
    (
        new("t", 1, 2),
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because "
        "only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
    ),
    (
        new("t", 1, -1, by_hand=[(0, [1])]),
        ErrorCode.INVALID_REQUEST,
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    (
        new("t", flush_ms=None),
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: flush.ms",
    ),
    (new("t", no_such_key="1"), ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such.key"),
    (
        new("t", flush_ms="abc"),
        ErrorCode.INVALID_CONFIG,
        "Invalid value abc for configuration flush.ms: Not a number of type LONG",
    ),
]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(("asked", "code", "message"), REFUSALS, ids=[str(code) for _, code, _ in REFUSALS])
async def test_a_bad_topic_does_not_harm_the_others(
    asked: CreatableTopic, code: ErrorCode, message: str, validate_only: bool, autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("there")
        refused, made = await create(scene, asked, new("good"), validate_only=validate_only)
        assert (refused.name, refused.error_code, refused.error_message) == (asked.name, code, message)
        assert (refused.topic_id, refused.num_partitions, refused.replication_factor) == (uuids.ZERO, -1, -1)
        assert (made.name, made.error_code) == ("good", 0)
        assert set(scene.broker.store.image.topics) == ({"there"} if validate_only else {"there", "good"})


async def test_topics_named_twice_are_not_made(autojump_clock) -> None:
    """They are told once, at the end."""
    async with running() as scene:
        results = await create(scene, new("twice"), new("once"), new("twice"), new("twice"))
        assert codes(results) == [("once", 0), ("twice", ErrorCode.INVALID_REQUEST)]
        assert results[1].error_message == "Duplicate topic name."
        assert set(scene.broker.store.image.topics) == {"once"}


async def test_too_many_partitions_at_once(autojump_clock) -> None:
    async with running() as scene:
        results = await create(scene, new("a", 9_999), new("b", 2), validate_only=True)
        assert codes(results) == [("a", ErrorCode.POLICY_VIOLATION), ("b", ErrorCode.POLICY_VIOLATION)]


@pytest.mark.parametrize("describe_configs", [False, True])
async def test_who_may_create_may_not_always_see_configs(describe_configs: bool, autojump_clock) -> None:
    async with running() as scene:
        also = [Operation.DESCRIBE_CONFIGS] if describe_configs else []
        await scene.allow(Operation.CREATE, *also, names={"mine"})
        results: Any = {result.name: result for result in await create(scene, new("mine"), new("yours"))}
        assert results["yours"].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        mine = results["mine"]
        assert mine.error_code == 0
        if describe_configs:
            assert (mine.topic_config_error_code, mine.num_partitions) == (0, 1)
            assert mine.configs
        else:
            assert mine.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert (mine.num_partitions, mine.replication_factor, mine.configs) == (-1, -1, [])
        assert set(scene.broker.store.image.topics) == {"mine"}


async def test_what_is_refused_to_everybody_is_refused_for_that(autojump_clock) -> None:
    async with running() as scene:
        await scene.allow()
        results = await create(scene, new("twice"), new("once"), new("twice"), new("__cluster_metadata"))
        assert {result.name: (result.error_code, result.error_message) for result in results} == {
            "once": (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."),
            "twice": (ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
            "__cluster_metadata": (
                ErrorCode.INVALID_REQUEST,
                "Creation of internal topic __cluster_metadata is prohibited.",
            ),
        }
        assert len(results) == 3
