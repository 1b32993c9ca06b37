"""Clients that commit, fetch and delete offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.coordinator.groups.offsets.commit import commit, commit_in_transaction
from kwire.coordinator.groups.offsets.delete import delete_offsets
from kwire.coordinator.groups.offsets.fetch import fetch, fetch_stable
from kwire.coordinator.runtime.outcome import Producer
from kwire.protocol.errors import ErrorCode
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
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from kwire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinator.groups.desk import Desk, client

GROUP = "group"
Offsets = Mapping[tuple[str, int], int]
Codes = dict[tuple[str, int], ErrorCode]


def store(desk: Desk, offsets: Offsets, *, version: int = 9, metadata: str | None = "", **options: Any) -> Codes:
    """OffsetCommit; the codes by partition. KafkaError is raised."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=metadata
                )
            ],
        )
        for (topic, index), offset in offsets.items()
    ]
    request = OffsetCommitRequest(**({"group_id": GROUP, "topics": topics} | options))
    return _codes(desk.run(lambda machine, now: commit(machine, client(version=version), request, now)))


def store_in_transaction(
    desk: Desk, producer: Producer, offsets: Offsets, *, metadata: str | None = "", **options: Any
) -> Codes:
    """TxnOffsetCommit, likewise."""
    topics = [
        TxnOffsetCommitRequestTopic(
            name=topic,
            partitions=[
                TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=metadata
                )
            ],
        )
        for (topic, index), offset in offsets.items()
    ]
    fields = {
        "group_id": GROUP,
        "transactional_id": "t",
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "generation_id": -1,
        "topics": topics,
    }
    request = TxnOffsetCommitRequest(**(fields | options))
    return _codes(desk.run(lambda machine, now: commit_in_transaction(machine, client(version=3), request, now)))


def remove(desk: Desk, *partitions: tuple[str, int], group_id: str = GROUP) -> Codes:
    """OffsetDelete, likewise."""
    topics = [
        OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
        for topic, index in partitions
    ]
    request = OffsetDeleteRequest(group_id=group_id, topics=topics)
    return _codes(desk.run(lambda machine, now: delete_offsets(machine, request)))


def stored(desk: Desk, group_id: str = GROUP) -> dict[tuple[str, int], int]:
    """All offsets that an OffsetFetch tells."""
    request = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    return _offsets(fetch(desk.machine, request))


def stable(desk: Desk, *partitions: tuple[str, int], group_id: str = GROUP) -> dict[tuple[str, int], Any]:
    """What one that requires stable offsets tells of all, or of some partitions: offsets, or codes in their place."""
    topics = None
    if partitions:
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[index]) for topic, index in partitions]
    request = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    response = desk.run(lambda machine, now: fetch_stable(machine, request))
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        if partition.error_code
        else partition.committed_offset
        for topic in response.topics
        for partition in topic.partitions
    }


def _codes(response: Any) -> Codes:
    return {
        (topic.name, partition.partition_index): ErrorCode(partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    }


def _offsets(response: OffsetFetchResponseGroup) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in response.topics
        for partition in topic.partitions
    }
