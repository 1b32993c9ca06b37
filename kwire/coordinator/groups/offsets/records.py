"""Committed offsets as records of __consumer_offsets, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.classic.group import ClassicGroup
from kwire.coordinator.groups.offsets.offsets import CommittedOffset, TopicPartition
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Producer
from kwire.protocol import uuids
from kwire.protocol.coordinator_records.legacy_offset_commit import LegacyOffsetCommitKey, LegacyOffsetCommitValue
from kwire.protocol.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine

_WITH_EXPIRY = 1
_WITHOUT_TOPIC_ID = 3
_WITH_TOPIC_ID = 4


def offset_record(group_id: str, partition: TopicPartition, offset: CommittedOffset) -> CoordinatorRecord:
    """A commit. Value versions as Apache Kafka's: 1 with a retention of its own, 4 with a topic id, else 3."""
    topic, index = partition
    expires = offset.expires_ms
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.committed_ms,
        expire_timestamp=-1 if expires is None else expires,
        topic_id=offset.topic_id,
    )
    if expires is not None:
        version = _WITH_EXPIRY
    else:
        version = _WITHOUT_TOPIC_ID if offset.topic_id == uuids.ZERO else _WITH_TOPIC_ID
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=index), value, version)


def offset_tombstone(group_id: str, partition: TopicPartition) -> CoordinatorRecord:
    """The end of a commit."""
    topic, index = partition
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=index), None)


def replay_offset(machine: GroupMachine, record: CoordinatorRecord, producer: Producer | None) -> None:
    """A commit, or its end. A group that does nothing but commit exists from its first commit on."""
    key, value = record.key, record.value
    assert isinstance(key, OffsetCommitKey | LegacyOffsetCommitKey)
    partition = key.topic, key.partition
    if value is None:
        machine.offsets.remove(key.group, partition)
        return
    assert isinstance(value, OffsetCommitValue | LegacyOffsetCommitValue)
    if key.group not in machine.groups:
        machine.groups[key.group] = ClassicGroup(key.group, value.commit_timestamp)
    machine.offsets.put(key.group, partition, _offset(value), producer)


def _offset(value: OffsetCommitValue | LegacyOffsetCommitValue) -> CommittedOffset:
    if isinstance(value, LegacyOffsetCommitValue):
        return CommittedOffset(value.offset, -1, value.metadata, value.commit_timestamp)
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        None if value.expire_timestamp == -1 else value.expire_timestamp,
        value.topic_id,
    )
