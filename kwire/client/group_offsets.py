"""The offsets that a group has committed: reading them, setting them from outside, deleting them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.client.metadata import check
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kwire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kwire.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from kwire.client.connection import Connection
    from kwire.client.groups import Groups
    from kwire.protocol.types import TopicPartition

_LAST_VERSION_WITH_TOPIC_NAMES = 9
"""Of OffsetFetch and OffsetCommit: later ones have topic ids, which a deleted topic's offsets have none of."""

_FIRST_VERSION_WITH_SEVERAL_GROUPS = 8
_FIRST_VERSION_WITH_ALL_TOPICS = 2


class CommittedOffset(NamedTuple):
    """The next offset to read. `leader_epoch` is -1 and `metadata` empty where the member gave none."""

    offset: int
    leader_epoch: int
    metadata: str


async def committed_offsets(groups: Groups, group: str) -> dict[TopicPartition, CommittedOffset]:
    """What the group has committed, by topic and partition; nothing where there is no such group."""

    async def ask(connection: Connection, coordinator: int) -> dict[TopicPartition, CommittedOffset]:
        connection.require(OffsetFetchRequest, _FIRST_VERSION_WITH_ALL_TOPICS)
        version = connection.version(OffsetFetchRequest, _LAST_VERSION_WITH_TOPIC_NAMES)
        answer: Any
        if version >= _FIRST_VERSION_WITH_SEVERAL_GROUPS:
            every = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
            (answer,) = (await connection.call(every, version)).groups
        else:
            answer = await connection.call(OffsetFetchRequest(group_id=group, topics=None), version)
        check(answer.error_code, f"group {group!r}")
        found = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                check(partition.error_code, f"group {group!r}, {topic.name}-{partition.partition_index}")
                if partition.committed_offset >= 0:
                    found[topic.name, partition.partition_index] = CommittedOffset(
                        partition.committed_offset, partition.committed_leader_epoch, partition.metadata or ""
                    )
        return dict(sorted(found.items()))

    return await groups.at_coordinator(group, ask)


async def commit_offsets(
    groups: Groups, group: str, offsets: Mapping[TopicPartition, int], *, generation: int = -1, member_id: str = ""
) -> None:
    """Sets committed offsets, as a member, or as nobody: then of a group without members, which may begin so.

    Raises UNKNOWN_MEMBER_ID where there are others, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, else the first
    partition's error: what other partitions were to have they may have got.
    """
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (topic, number), offset in offsets.items():
        topics.setdefault(topic, OffsetCommitRequestTopic(name=topic)).partitions.append(
            OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata="")
        )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=list(topics.values()),
    )

    async def ask(connection: Connection, coordinator: int) -> None:
        version = connection.version(OffsetCommitRequest, _LAST_VERSION_WITH_TOPIC_NAMES)
        for topic in (await connection.call(request, version)).topics:
            for partition in topic.partitions:
                check(partition.error_code, f"group {group!r}, {topic.name}-{partition.partition_index}")

    await groups.at_coordinator(group, ask)


async def delete_offsets(groups: Groups, group: str, partitions: Collection[TopicPartition]) -> None:
    """Forgets committed offsets (those that are not there too), as long as no member subscribes to the topic.

    Raises GROUP_ID_NOT_FOUND, GROUP_SUBSCRIBED_TO_TOPIC and others: the first there is.
    """
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for topic, number in partitions:
        topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic)).partitions.append(
            OffsetDeleteRequestPartition(partition_index=number)
        )
    request = OffsetDeleteRequest(group_id=group, topics=list(topics.values()))

    async def ask(connection: Connection, coordinator: int) -> None:
        response = await connection.call(request)
        check(response.error_code, f"group {group!r}")
        for topic in response.topics:
            for partition in topic.partitions:
                check(partition.error_code, f"group {group!r}, {topic.name}-{partition.partition_index}")

    await groups.at_coordinator(group, ask)
