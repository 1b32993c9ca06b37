"""OffsetFetch (key 9): where groups go on reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.coordinator.groups.offsets.offsets import CommittedOffset, TopicPartition
from kwire.coordinator.runtime.outcome import Outcome
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


def fetch(machine: GroupMachine, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    """The offsets of a group that no failure can take back, of the topics asked for or of all.

    Topics have names, and ids as far as known. -1 where nothing is committed, or for a topic of another id; a group
    that does not exist has committed nothing. Raises UNKNOWN_MEMBER_ID and STALE_MEMBER_EPOCH as `Group.check_fetch`.
    """
    offsets = machine.offsets
    return _fetch(machine, group, offsets.safe, offsets.safe_of_group, _told)


def fetch_stable(machine: GroupMachine, group: OffsetFetchRequestGroup) -> Outcome[OffsetFetchResponseGroup]:
    """The newest offsets, once they are stored; UNSTABLE_OFFSET_COMMIT for what an open transaction may change.

    Raises as `fetch`.
    """
    offsets = machine.offsets

    def told(index: int, topic: str, offset: CommittedOffset | None) -> OffsetFetchResponsePartitions:
        if offsets.is_pending(group.group_id, (topic, index)):
            return unknown_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return _told(index, topic, offset)

    return Outcome(_fetch(machine, group, offsets.get, offsets.of_group, told))


def unknown_offset(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    """What is told of a partition without an offset, or where none is told."""
    return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=code)


def _fetch(
    machine: GroupMachine,
    group: OffsetFetchRequestGroup,
    get: Callable[[str, TopicPartition], CommittedOffset | None],
    get_all: Callable[[str], list[tuple[TopicPartition, CommittedOffset]]],
    told: Callable[[int, str, CommittedOffset | None], OffsetFetchResponsePartitions],
) -> OffsetFetchResponseGroup:
    group_id = group.group_id
    found = machine.groups.get(group_id)
    if found is not None:
        found.check_fetch(group.member_id, group.member_epoch)
    if group.topics is None:
        by_topic: dict[str, list[OffsetFetchResponsePartitions]] = {}
        for (topic, index), offset in get_all(group_id):
            by_topic.setdefault(topic, []).append(told(index, topic, offset))
        topics = [OffsetFetchResponseTopics(name=name, partitions=partitions) for name, partitions in by_topic.items()]
    else:
        topics = [
            OffsetFetchResponseTopics(
                name=asked.name,
                topic_id=asked.topic_id,
                partitions=[
                    told(index, asked.name, _of(asked.topic_id, get(group_id, (asked.name, index))))
                    for index in asked.partition_indexes
                ],
            )
            for asked in group.topics
        ]
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics)


def _of(topic_id: bytes, offset: CommittedOffset | None) -> CommittedOffset | None:
    """None for what was committed for an earlier topic of the same name."""
    return offset if offset is not None and offset.is_of(topic_id) else None


def _told(index: int, topic: str, offset: CommittedOffset | None) -> OffsetFetchResponsePartitions:
    if offset is None:
        return unknown_offset(index)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )
