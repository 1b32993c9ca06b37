"""DescribeTopicPartitions: pages, cursors and limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kwire.metadata.changes import BrokerRegistered, BrokerUnregistered
from kwire.metadata.image import Endpoint
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from kwire.security.authorizer import SUPPORTED_OPERATIONS, ResourceType
from tests.broker.scene import NEIGHBOUR, Scene, running

Page = tuple[dict[str, list[int]], tuple[str, int] | None]
"""(partitions told of each topic, the next cursor)"""


async def ask(
    scene: Scene, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    return await scene.call(
        DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in topics],
            response_partition_limit=limit,
            cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
    )


async def page(scene: Scene, *topics: str, **options: Any) -> Page:
    response = await ask(scene, *topics, **options)
    following = response.next_cursor
    return (
        {topic.name: [each.partition_index for each in topic.partitions] for topic in response.topics},
        None if following is None else (following.topic_name, following.partition_index),
    )


async def abc(scene: Scene) -> None:
    for name, partitions in (("c", 5), ("a", 3), ("b", 1)):
        await scene.create(name, partitions)


ALL = {"a": [0, 1, 2], "b": [0], "c": [0, 1, 2, 3, 4]}


async def test_topics_come_in_the_order_of_their_names_and_once(autojump_clock) -> None:
    async with running() as scene:
        await abc(scene)
        for asked in ((), ("c", "a", "b", "a")):
            told, following = await page(scene, *asked)
            assert (list(told.items()), following) == (list(ALL.items()), None)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (-1, ({"a": [0]}, ("a", 1))),
        (0, ({"a": [0]}, ("a", 1))),
        (2, ({"a": [0, 1]}, ("a", 2))),
        (3, ({"a": [0, 1, 2]}, ("b", 0))),
        (4, ({"a": [0, 1, 2], "b": [0]}, ("c", 0))),
        (8, ({"a": [0, 1, 2], "b": [0], "c": [0, 1, 2, 3]}, ("c", 4))),
        (9, (ALL, None)),
    ],
)
async def test_a_page_has_so_many_partitions(limit: int, expected: Page, autojump_clock) -> None:
    async with running() as scene:
        await abc(scene)
        assert await page(scene, "c", "a", "b", limit=limit) == expected
        assert await page(scene, limit=limit) == expected


async def test_the_broker_has_a_limit_too(autojump_clock) -> None:
    async with running({"max.request.partition.size.limit": "2"}) as scene:
        await abc(scene)
        assert await page(scene) == ({"a": [0, 1]}, ("a", 2))


@pytest.mark.parametrize(
    ("cursor", "expected"),
    [
        (("a", 2), ({"a": [2], "b": [0]}, ("c", 0))),
        (("a", 3), ({"a": [], "b": [0], "c": [0]}, ("c", 1))),
        (("a", 9), ({"a": [], "b": [0], "c": [0]}, ("c", 1))),
        (("c", 3), ({"c": [3, 4]}, None)),
        (("c", 4), ({"c": [4]}, None)),
    ],
)
async def test_a_cursor_says_where_to_go_on(cursor: tuple[str, int], expected: Page, autojump_clock) -> None:
    async with running() as scene:
        await abc(scene)
        assert await page(scene, "a", "b", "c", limit=2, cursor=cursor) == expected


async def test_pages_put_together_are_all(autojump_clock) -> None:
    async with running() as scene:
        await abc(scene)
        found: dict[str, list[int]] = {}
        cursor = None
        for _ in range(5):
            told, cursor = await page(scene, limit=2, cursor=cursor)
            for name, indexes in told.items():
                found.setdefault(name, []).extend(indexes)
        assert (found, cursor) == (ALL, None)


@pytest.mark.parametrize("cursor", [("b", 0), ("z", 0), ("a", -1)])
async def test_a_cursor_that_makes_no_sense(cursor: tuple[str, int], autojump_clock) -> None:
    async with running() as scene:
        await abc(scene)
        response = await ask(scene, "a", "c", cursor=cursor)
        assert [(topic.name, topic.error_code) for topic in response.topics] == [
            ("a", ErrorCode.INVALID_REQUEST),
            ("c", ErrorCode.INVALID_REQUEST),
        ]


async def test_of_all_topics_a_cursor_may_name_one_that_is_gone(autojump_clock) -> None:
    async with running() as scene:
        await abc(scene)
        assert await page(scene, cursor=("bb", 7)) == ({"c": ALL["c"]}, None)


async def test_topics_that_do_not_exist(autojump_clock) -> None:
    """They take no room on the page."""
    async with running() as scene:
        await abc(scene)
        response = await ask(scene, "a", "aa", "bad name", "b", limit=4)
        assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in response.topics] == [
            ("a", 0, 3),
            ("aa", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
            ("b", 0, 1),
        ]
        assert response.next_cursor.topic_name == "bad name"
        (illegal,) = (await ask(scene, "bad name")).topics
        assert illegal.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_what_is_told_of_a_topic(autojump_clock) -> None:
    async with running() as scene:
        topic_id = await scene.create("__consumer_offsets")
        await scene.place("__consumer_offsets", 2, 1, in_sync=[2])
        known, unknown = (await ask(scene, "__consumer_offsets", "absent")).topics
        assert (known.topic_id, known.is_internal, unknown.is_internal) == (topic_id, True, False)
        everything = sum(1 << operation for operation in SUPPORTED_OPERATIONS[ResourceType.TOPIC])
        assert [known.topic_authorized_operations, unknown.topic_authorized_operations] == [everything] * 2
        (partition,) = known.partitions
        assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 2, 1)
        assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([2, 1], [2], [])
        assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (BrokerUnregistered(2), ErrorCode.LEADER_NOT_AVAILABLE),
        (
            BrokerRegistered(replace(NEIGHBOUR, endpoints=(Endpoint("OTHER", "neighbour", 9094, "PLAINTEXT"),))),
            ErrorCode.LISTENER_NOT_FOUND,
        ),
    ],
)
async def test_a_leader_that_cannot_be_reached(change: Any, code: ErrorCode, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.place("t", 2, 1)
        await scene.broker.store.commit([change])
        (partition,) = (await ask(scene, "t")).topics[0].partitions
        assert (partition.error_code, partition.leader_id) == (code, -1)
        assert (partition.replica_nodes, partition.offline_replicas) == ([2, 1], [2])
