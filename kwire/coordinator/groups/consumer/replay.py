"""The records of consumer groups, taken into the state. The end of what does not exist is no news."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.classic.group import ClassicGroup
from kwire.coordinator.groups.consumer.group import ConsumerGroup, ResolvedRegex
from kwire.coordinator.groups.consumer.member import (
    LEFT,
    NOTHING_OWNED,
    ClassicMetadata,
    ClassicProtocol,
    ConsumerMember,
    EpochsByPartition,
    MemberState,
)
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Producer
from kwire.protocol.coordinator_records import consumer_group_current_member_assignment as current
from kwire.protocol.coordinator_records import consumer_group_member_metadata as metadata
from kwire.protocol.coordinator_records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from kwire.protocol.coordinator_records.consumer_group_partition_metadata import ConsumerGroupPartitionMetadataKey
from kwire.protocol.coordinator_records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from kwire.protocol.coordinator_records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from kwire.protocol.coordinator_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from kwire.coordinator.groups.machine import GroupMachine


def replay_epoch(machine: GroupMachine, record: CoordinatorRecord, producer: Producer | None) -> None:
    """A group epoch, or the end of the group."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupMetadataKey)
    if value is None:
        if isinstance(machine.groups.get(key.group_id), ConsumerGroup):
            machine.groups.pop(key.group_id)
        return
    assert isinstance(value, ConsumerGroupMetadataValue)
    group = _group(machine, key.group_id)
    group.epochs = group.epochs._replace(group=value.epoch, metadata_hash=value.metadata_hash)


def replay_partition_metadata(machine: GroupMachine, record: CoordinatorRecord, producer: Producer | None) -> None:
    """What brokers before 4.1 wrote instead of the hash; the next group epoch deletes it."""
    key = record.key
    assert isinstance(key, ConsumerGroupPartitionMetadataKey)
    group = _existing(machine, key.group_id) if record.value is None else _group(machine, key.group_id)
    if group is not None and group.epochs.has_partition_metadata is (record.value is None):
        group.epochs = group.epochs._replace(has_partition_metadata=record.value is not None)


def replay_member(machine: GroupMachine, record: CoordinatorRecord, producer: Producer | None) -> None:
    """Who a member is and what it subscribes to, or its end."""
    key, value = record.key, record.value
    assert isinstance(key, metadata.ConsumerGroupMemberMetadataKey)
    if value is None:
        existing = _existing(machine, key.group_id)
        if existing is not None:
            existing.remove(key.member_id)
        return
    assert isinstance(value, metadata.ConsumerGroupMemberMetadataValue)
    group = _group(machine, key.group_id)
    group.update(
        _member(group, key.member_id)._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=_classic(value.classic_member_metadata),
        )
    )


def replay_current_assignment(machine: GroupMachine, record: CoordinatorRecord, producer: Producer | None) -> None:
    """What a member has, or that it leaves."""
    key, value = record.key, record.value
    assert isinstance(key, current.ConsumerGroupCurrentMemberAssignmentKey)
    if value is None:
        existing = _existing(machine, key.group_id)
        member = None if existing is None else existing.members.get(key.member_id)
        if existing is not None and member is not None:
            existing.update(
                member._replace(
                    epoch=LEFT, previous_epoch=LEFT, assigned=NOTHING_OWNED, pending_revocation=NOTHING_OWNED
                )
            )
        return
    assert isinstance(value, current.ConsumerGroupCurrentMemberAssignmentValue)
    group = _group(machine, key.group_id)
    group.update(
        _member(group, key.member_id)._replace(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=_owned(value.assigned_partitions, value.member_epoch),
            pending_revocation=_owned(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def replay_target(machine: GroupMachine, record: CoordinatorRecord, producer: Producer | None) -> None:
    """What a member shall have, or that it shall have nothing."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupTargetAssignmentMemberKey)
    if value is None:
        existing = _existing(machine, key.group_id)
        if existing is not None:
            existing.targets.pop(key.member_id)
        return
    assert isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
    _group(machine, key.group_id).targets[key.member_id] = {
        topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
    }


def replay_target_epoch(machine: GroupMachine, record: CoordinatorRecord, producer: Producer | None) -> None:
    """The epoch of the target assignment, or that there is none any more."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupTargetAssignmentMetadataKey)
    if value is None:
        existing = _existing(machine, key.group_id)
        if existing is not None:
            existing.epochs = existing.epochs._replace(assignment=-1, assigned_ms=0)
        return
    assert isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
    group = _group(machine, key.group_id)
    group.epochs = group.epochs._replace(assignment=value.assignment_epoch, assigned_ms=value.assignment_timestamp)


def replay_regex(machine: GroupMachine, record: CoordinatorRecord, producer: Producer | None) -> None:
    """The topics that match a regular expression, or that nobody subscribes to it any more."""
    key, value = record.key, record.value
    assert isinstance(key, ConsumerGroupRegularExpressionKey)
    if value is None:
        existing = _existing(machine, key.group_id)
        if existing is not None:
            existing.resolve(key.regular_expression, None)
        return
    assert isinstance(value, ConsumerGroupRegularExpressionValue)
    _group(machine, key.group_id).resolve(
        key.regular_expression, ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    )


REPLAY = {
    ConsumerGroupMetadataKey: replay_epoch,
    ConsumerGroupPartitionMetadataKey: replay_partition_metadata,
    metadata.ConsumerGroupMemberMetadataKey: replay_member,
    current.ConsumerGroupCurrentMemberAssignmentKey: replay_current_assignment,
    ConsumerGroupTargetAssignmentMemberKey: replay_target,
    ConsumerGroupTargetAssignmentMetadataKey: replay_target_epoch,
    ConsumerGroupRegularExpressionKey: replay_regex,
}


def _existing(machine: GroupMachine, group_id: str) -> ConsumerGroup | None:
    group = machine.groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) else None


def _group(machine: GroupMachine, group_id: str) -> ConsumerGroup:
    """The group, made where there is none, or only one that exists since somebody committed offsets."""
    present = machine.groups.get(group_id)
    if isinstance(present, ConsumerGroup):
        return present
    if isinstance(present, ClassicGroup) and (present.members or present.protocol_type):
        raise RuntimeError(f"a record of a consumer group for {present!r}, which is a classic group")
    group = ConsumerGroup(group_id, machine.timeline)
    machine.groups[group_id] = group
    return group


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id)


def _classic(written: metadata.ClassicMemberMetadata | None) -> ClassicMetadata | None:
    if written is None:
        return None
    protocols = (ClassicProtocol(each.name, bytes(each.metadata)) for each in written.supported_protocols)
    return ClassicMetadata(written.session_timeout_ms, tuple(protocols))


def _owned(written: list[current.TopicPartitions], member_epoch: int) -> EpochsByPartition:
    """Brokers before 4.2 did not write the epochs; the member's own stands for them."""
    owned = {}
    for topic in written:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned
