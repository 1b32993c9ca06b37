"""Metadata: which topics are told, which are created, and how brokers and leaders look from a listener."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kwire.metadata.changes import BrokerRegistered, BrokerUnregistered
from kwire.metadata.image import Endpoint
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kwire.security.authorizer import SUPPORTED_OPERATIONS, Operation, ResourceType
from tests.broker.scene import NEIGHBOUR, Scene, running

NEWEST = 13
NOT_ASKED = -(2**31)
"""Of authorized operations."""
UNKNOWN_ID = b"an unknown topic"
ELSEWHERE = replace(NEIGHBOUR, endpoints=(Endpoint("OTHER", "neighbour", 9094, "PLAINTEXT"),))
"""The neighbour with another listener only."""


def names(*topics: str | None) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in topics]


def ids(*topics: bytes) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in topics]


async def ask(
    scene: Scene, topics: list[MetadataRequestTopic] | None, version: int = NEWEST, **options: Any
) -> MetadataResponse:
    return await scene.call(MetadataRequest(topics=topics, **options), version)


def told(response: MetadataResponse) -> list[tuple[str | None, int, int]]:
    """(name, error code, number of partitions) of each topic."""
    return [(topic.name, topic.error_code, len(topic.partitions)) for topic in response.topics]


# Which topics


@pytest.mark.parametrize("version", [0, 1, 4, 13])
async def test_all_topics_and_none(version: int, autojump_clock) -> None:
    """The oldest version has no null, and means all by none."""
    async with running() as scene:
        await scene.create("a")
        await scene.create("b", 2)
        everything = [("a", 0, 1), ("b", 0, 2)]
        assert told(await ask(scene, [], version)) == (everything if version == 0 else [])
        if version > 0:
            assert told(await ask(scene, None, version)) == everything


@pytest.mark.parametrize("version", [0, 13])
async def test_each_topic_is_told_once_in_the_order_asked(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("a")
        await scene.create("b", 2)
        assert told(await ask(scene, names("b", "a", "b"), version)) == [("b", 0, 2), ("a", 0, 1)]


async def test_topics_by_id(autojump_clock) -> None:
    async with running() as scene:
        a = await scene.create("a")
        response = await ask(scene, ids(UNKNOWN_ID, a, a))
        assert told(response) == [(None, ErrorCode.UNKNOWN_TOPIC_ID, 0), ("a", 0, 1)]
        assert [topic.topic_id for topic in response.topics] == [UNKNOWN_ID, a]


async def test_where_a_topic_is_asked_for_by_id_names_do_not_count(autojump_clock) -> None:
    async with running() as scene:
        a = await scene.create("a")
        await scene.create("b")
        asked = [MetadataRequestTopic(name="b", topic_id=a), *names("b", "new")]
        assert told(await ask(scene, asked)) == [("a", 0, 1)]
        assert set(scene.broker.store.image.topics) == {"a", "b"}


@pytest.mark.parametrize(("version", "code"), [(10, ErrorCode.INVALID_REQUEST), (12, ErrorCode.NONE)])
async def test_ids_came_with_version_12(version: int, code: ErrorCode, autojump_clock) -> None:
    async with running() as scene:
        a = await scene.create("a")
        response = await ask(scene, [MetadataRequestTopic(name="a", topic_id=a)], version)
        assert told(response) == [("a", code, 0 if code else 1)]
        if version < 12:
            nameless = await ask(scene, names(None), version)
            assert told(nameless) == [("", ErrorCode.INVALID_REQUEST, 0)]


async def test_neither_name_nor_id(autojump_clock) -> None:
    async with running() as scene:
        assert told(await ask(scene, names(None))) == [("", ErrorCode.INVALID_TOPIC_EXCEPTION, 0)]


# Creation


@pytest.mark.parametrize("version", [0, 3, 4, 13])
async def test_a_missing_topic_is_made(version: int, autojump_clock) -> None:
    async with running({"num.partitions": "3"}) as scene:
        assert told(await ask(scene, names("new"), version)) == [("new", 0, 3)]
        assert (await scene.produce("new", b"v")).error_code == 0


@pytest.mark.parametrize(("broker_allows", "client_allows"), [("false", True), ("true", False)])
async def test_both_sides_must_allow_creation(broker_allows: str, client_allows: bool, autojump_clock) -> None:
    async with running({"auto.create.topics.enable": broker_allows}) as scene:
        response = await ask(scene, names("new"), allow_auto_topic_creation=client_allows)
        assert told(response) == [("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
        assert response.topics[0].topic_id == uuids.ZERO
        assert not scene.broker.store.image.topics


@pytest.mark.parametrize("creation", [False, True])
@pytest.mark.parametrize("name", ["", ".", "bad name", "a" * 250])
async def test_illegal_names(name: str, creation: bool, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("a")
        response = await ask(scene, names(name, "a"), allow_auto_topic_creation=creation)
        assert told(response) == [(name, ErrorCode.INVALID_TOPIC_EXCEPTION, 0), ("a", 0, 1)]


async def test_a_name_that_collides_is_not_made(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("a.b")
        assert told(await ask(scene, names("a_b"))) == [("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION, 0)]


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("__consumer_offsets", "offsets.topic.num.partitions"),
        ("__transaction_state", "transaction.state.log.num.partitions"),
    ],
)
async def test_the_coordinators_topics_are_made_as_they_are_to_be(name: str, setting: str, autojump_clock) -> None:
    async with running({setting: "3"}) as scene:
        assert told(await ask(scene, names(name), allow_auto_topic_creation=False)) == [
            (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
        ]
        response = await ask(scene, names(name))
        assert told(response) == [(name, 0, 3)]
        assert response.topics[0].is_internal
        assert scene.log(name).config.compacted


async def test_the_topic_of_a_coordinator_that_there_is_not_is_not_made(autojump_clock) -> None:
    async with running() as scene:
        response = await ask(scene, names("__share_group_state"))
        assert told(response) == [("__share_group_state", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)]
        assert response.topics[0].is_internal


# Brokers and leaders


async def test_the_cluster(autojump_clock) -> None:
    async with running({"broker.rack": "here"}) as scene:
        await scene.broker.store.commit([BrokerRegistered(NEIGHBOUR)])
        response = await ask(scene, [])
        assert [(node.node_id, node.host, node.port, node.rack) for node in response.brokers] == [
            (1, "broker", 9092, "here"),
            (2, "neighbour", 9093, "rack"),
        ]
        assert (response.cluster_id, response.controller_id) == (scene.broker.store.image.cluster_id, 1)


async def two_leaders(scene: Scene, count: int) -> None:
    """Topic t, whose first partition the neighbour leads and whose second is led here."""
    await scene.create("t", count)
    await scene.place("t", 2, 1, partition=0)
    await scene.place("t", 1, 2, partition=1)


COUNTS = [2, 20]
"""Of partitions: those of a large topic are kept from one answer to the next."""


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("version", [0, 6, 7, 13])
async def test_leaders_and_replicas(version: int, count: int, autojump_clock) -> None:
    async with running() as scene:
        await two_leaders(scene, count)
        for _ in range(2):
            (topic,) = (await ask(scene, names("t"), version)).topics
            assert [each.partition_index for each in topic.partitions] == list(range(count))
            for told, replicas in zip(topic.partitions[:2], ([2, 1], [1, 2]), strict=True):
                assert (told.error_code, told.leader_id) == (0, replicas[0])
                assert (told.replica_nodes, told.isr_nodes, told.offline_replicas) == (replicas, replicas, [])
                assert told.leader_epoch == (1 if version >= 7 else -1)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("version", [0, 1, 5, 6, 13])
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (BrokerUnregistered(2), ErrorCode.LEADER_NOT_AVAILABLE),
        (BrokerRegistered(replace(NEIGHBOUR, fenced=True)), ErrorCode.LEADER_NOT_AVAILABLE),
        (BrokerRegistered(ELSEWHERE), ErrorCode.LISTENER_NOT_FOUND),
    ],
    ids=["gone", "fenced", "without the listener"],
)
async def test_a_broker_that_cannot_be_reached(
    version: int, count: int, change: Any, error: ErrorCode, autojump_clock
) -> None:
    async with running() as scene:
        await two_leaders(scene, count)
        await ask(scene, names("t"), version)
        await scene.broker.store.commit([change])
        response = await ask(scene, names("t"), version)
        assert [node.node_id for node in response.brokers] == [1]
        led_there, led_here = response.topics[0].partitions[:2]
        if version < 6:
            error = ErrorCode.LEADER_NOT_AVAILABLE  # the only one these know
        assert (led_there.error_code, led_there.leader_id, led_here.leader_id) == (error, -1, 1)
        if version == 0:
            # A client so old takes every replica named for one that it can reach.
            assert led_here.error_code == ErrorCode.REPLICA_NOT_AVAILABLE
            assert (led_here.replica_nodes, led_here.isr_nodes) == ([1], [1])
        else:
            assert led_here.error_code == 0
            assert (led_here.replica_nodes, led_here.isr_nodes) == ([1, 2], [1, 2])
        assert led_here.offline_replicas == ([2] if version >= 5 else [])


# Authorized operations


def bits(resource: ResourceType) -> int:
    return sum(1 << operation for operation in SUPPORTED_OPERATIONS[resource])


@pytest.mark.parametrize(("version", "of_cluster"), [(8, True), (10, True), (11, False), (13, False)])
async def test_authorized_operations(version: int, of_cluster: bool, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        asked = names("t", "bad name")
        plain = await ask(scene, asked, version)
        assert [topic.topic_authorized_operations for topic in plain.topics] == [NOT_ASKED] * 2
        assert plain.cluster_authorized_operations == NOT_ASKED
        response = await ask(
            scene,
            asked,
            version,
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=of_cluster,
        )
        assert [topic.topic_authorized_operations for topic in response.topics] == [bits(ResourceType.TOPIC)] * 2
        assert response.cluster_authorized_operations == (bits(ResourceType.CLUSTER) if of_cluster else NOT_ASKED)


async def test_what_may_not_be_described_is_hidden(autojump_clock) -> None:
    async with running() as scene:
        for name in ("seen", "hidden"):
            await scene.create(name)
        hidden = scene.id_of("hidden")
        await scene.allow(Operation.DESCRIBE, names={"seen", "new"})
        assert told(await ask(scene, None)) == [("seen", 0, 1)]
        assert told(await ask(scene, ids(hidden))) == [(None, ErrorCode.UNKNOWN_TOPIC_ID, 0)]
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert told(await ask(scene, names("hidden", "seen", "new"))) == [
            ("hidden", refused, 0),
            ("seen", 0, 1),
            ("new", refused, 0),  # may be described, may not be created
        ]
        described = await ask(scene, names("seen"), include_topic_authorized_operations=True)
        assert described.topics[0].topic_authorized_operations == 1 << Operation.DESCRIBE


async def test_what_cannot_be_made_does_not_hide_what_is_there(autojump_clock) -> None:
    """All that is missing would be too much at once."""
    async with running({"num.partitions": "5000"}) as scene:
        await scene.create("there")
        response = await ask(scene, names("a", "there", "b", "c"))
        assert told(response) == [
            ("a", ErrorCode.POLICY_VIOLATION, 0),
            ("there", 0, 1),
            ("b", ErrorCode.POLICY_VIOLATION, 0),
            ("c", ErrorCode.POLICY_VIOLATION, 0),
        ]
        assert [broker.node_id for broker in response.brokers] == [1]
