"""Fetch requests in few words. Where a version asks by topic id, these do too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kwire.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kwire.protocol.records.header import iter_batches
from tests.broker.scene import Scene

BY_ID = 13
NEWEST = 18
SESSION_LESS = -1

Asked = tuple[str, FetchPartition]
"""A topic's name and what is asked of a partition of it."""


def at(topic: str, offset: int = 0, partition: int = 0, *, max_bytes: int = 1 << 20, **options: Any) -> Asked:
    return topic, FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **options)


def named(scene: Scene, topic: str, version: int) -> dict[str, Any]:
    return {"topic_id": scene.id_of(topic)} if version >= BY_ID else {"topic": topic}


def request(
    scene: Scene,
    *asked: Asked,
    version: int = NEWEST,
    forgotten: Iterable[tuple[str, int]] = (),
    **options: Any,
) -> FetchRequest:
    """One topic entry for each partition, unless they follow one another; no waiting unless asked for."""
    topics: list[tuple[str, FetchTopic]] = []
    for topic, partition in asked:
        if not topics or topics[-1][0] != topic:
            topics.append((topic, FetchTopic(**named(scene, topic, version))))
        topics[-1][1].partitions.append(partition)
    defaults = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": SESSION_LESS}
    return FetchRequest(
        topics=[topic for _, topic in topics],
        forgotten_topics_data=[
            ForgottenTopic(**named(scene, topic, version), partitions=[partition]) for topic, partition in forgotten
        ],
        **(defaults | options),
    )


async def fetch(scene: Scene, *asked: Asked, version: int = NEWEST, **options: Any) -> FetchResponse:
    return await scene.call(request(scene, *asked, version=version, **options), version)


async def fetch_one(scene: Scene, asked: Asked, *, version: int = NEWEST, **options: Any) -> PartitionData:
    """The answer for the one partition that is asked for."""
    response = await fetch(scene, asked, version=version, **options)
    assert response.error_code == 0
    return response.responses[0].partitions[0]


def offsets(data: PartitionData) -> list[int]:
    """The base offsets of the batches that came."""
    return [header.base_offset for header, _ in iter_batches(data.records)]


def partitions(response: FetchResponse) -> list[PartitionData]:
    """All that was answered, whatever the topic."""
    return [data for topic in response.responses for data in topic.partitions]
