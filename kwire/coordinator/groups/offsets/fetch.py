"""OffsetFetch (key 9): where groups go on reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.offsets.offsets import CommittedOffset, TopicPartition
from kwire.coordinator.runtime.outcome import Now
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


def fetch(
    machine: GroupMachine, group: OffsetFetchRequestGroup, now: Now, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    """The offsets of a group, of the topics asked for (by name) or of all; -1 where nothing is committed.

    With `require_stable` a partition that an open transaction has an offset for answers UNSTABLE_OFFSET_COMMIT. A group
    that does not exist has committed nothing. Raises UNKNOWN_MEMBER_ID and STALE_MEMBER_EPOCH as `Group.check_fetch`.
    """
    found = machine.groups.get(group.group_id)
    if found is not None:
        found.check_fetch(group.member_id, group.member_epoch)
    response = OffsetFetchResponseGroup(group_id=group.group_id)
    if group.topics is None:
        by_topic: dict[str, list[OffsetFetchResponsePartitions]] = {}
        for (topic, index), offset in machine.offsets.safe_of_group(group.group_id):
            by_topic.setdefault(topic, []).append(
                _partition(machine, group.group_id, (topic, index), offset, require_stable)
            )
        response.topics = [OffsetFetchResponseTopics(name=name, partitions=found) for name, found in by_topic.items()]
        return response
    for asked in group.topics:
        partitions = [
            _partition(
                machine,
                group.group_id,
                (asked.name, index),
                machine.offsets.safe(group.group_id, (asked.name, index)),
                require_stable,
            )
            for index in asked.partition_indexes
        ]
        response.topics.append(
            OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=partitions)
        )
    return response


def _partition(
    machine: GroupMachine,
    group_id: str,
    partition: TopicPartition,
    offset: CommittedOffset | None,
    require_stable: bool,
) -> OffsetFetchResponsePartitions:
    index = partition[1]
    if require_stable and machine.offsets.is_pending(group_id, partition):
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=-1, metadata="", error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT
        )
    if offset is None:
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="")
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )
