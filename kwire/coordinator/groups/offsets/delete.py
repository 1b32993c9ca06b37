"""OffsetDelete (key 47), and what goes with a deleted group or topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.coordinator.groups.offsets.portions import portion
from kwire.coordinator.groups.offsets.records import offset_tombstone
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Outcome
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


def delete_offsets(machine: GroupMachine, request: OffsetDeleteRequest) -> Outcome[OffsetDeleteResponse]:
    """Forgets the offsets; GROUP_SUBSCRIBED_TO_TOPIC for topics that a member reads.

    Raises GROUP_ID_NOT_FOUND, and NON_EMPTY_GROUP for a group with members that are no consumers.
    """
    group = machine.groups.get(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    group.check_offset_delete()
    topics, records = [], []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        answers = []
        for asked in topic.partitions:
            partition = topic.name, asked.partition_index
            answers.append(OffsetDeleteResponsePartition(partition_index=asked.partition_index, error_code=code))
            offsets = machine.offsets
            present = offsets.get(request.group_id, partition) is not None
            if not subscribed and (present or offsets.is_pending(request.group_id, partition)):
                records.append(offset_tombstone(request.group_id, partition))
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
    return Outcome(OffsetDeleteResponse(topics=topics), records)


def tombstones_of_group(machine: GroupMachine, group_id: str) -> list[CoordinatorRecord]:
    """For every offset of a group, those of open transactions too."""
    partitions = [partition for partition, _ in machine.offsets.of_group(group_id)]
    pending = machine.offsets.pending_partitions(group_id).difference(partitions)
    return [offset_tombstone(group_id, partition) for partition in (*partitions, *sorted(pending))]


def forget_topics(machine: GroupMachine, topics: Mapping[str, bytes]) -> Outcome[bool]:
    """Topics (ids by name) were deleted: what groups committed for them goes, so that topics of the same names begin
    anew, and keep what has been committed for those.

    The response says whether something is left, for another such operation.
    """
    records, more = portion(_tombstones_of_topics(machine, topics))
    return Outcome(more, records)


def _tombstones_of_topics(machine: GroupMachine, topics: Mapping[str, bytes]) -> Iterator[CoordinatorRecord]:
    offsets = machine.offsets
    for group_id in {*offsets.by_group, *offsets.open_transactions}:
        committed = dict(offsets.of_group(group_id))
        concerned = {each for each in (*committed, *offsets.pending_partitions(group_id)) if each[0] in topics}
        for partition in sorted(concerned):
            # Commits in transactions do not say which topic of the name they are for.
            if partition not in committed or committed[partition].is_of(topics[partition[0]]):
                yield offset_tombstone(group_id, partition)
