"""The records of __consumer_offsets that make a consumer group (KIP-848). All values have version 0."""

from __future__ import annotations

from collections.abc import Iterable

from kwire.coordinator.groups.consumer.member import ConsumerMember, EpochsByPartition, Partitions
from kwire.coordinator.runtime.outcome import CoordinatorRecord
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
    TopicPartition,
)
from kwire.protocol.coordinator_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)


def member_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """Who a member is and what it subscribes to."""
    classic = member.classic
    return CoordinatorRecord(
        metadata.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id),
        metadata.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
            subscribed_topic_regex=member.topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=None
            if classic is None
            else metadata.ClassicMemberMetadata(
                session_timeout_ms=classic.session_timeout_ms,
                supported_protocols=[
                    metadata.ClassicProtocol(name=protocol.name, metadata=protocol.metadata)
                    for protocol in classic.protocols
                ],
            ),
        ),
    )


def current_assignment_record(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    """What a member has, and how far it has come."""
    return CoordinatorRecord(
        current.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id),
        current.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_owned(member.assigned),
            partitions_pending_revocation=_owned(member.pending_revocation),
        ),
    )


def _owned(owned: EpochsByPartition) -> list[current.TopicPartitions]:
    return [
        current.TopicPartitions(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic_id, epochs in owned.items()
    ]


def target_record(group_id: str, member_id: str, partitions: Partitions) -> CoordinatorRecord:
    """What a member shall have."""
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=sorted(indexes))
                for topic_id, indexes in partitions.items()
            ]
        ),
    )


def target_epoch_record(group_id: str, epoch: int, wall_ms: int) -> CoordinatorRecord:
    """The epoch of the target assignment, and when it was made."""
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=wall_ms),
    )


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """The group epoch, with the hash of the topics at its beginning."""
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def regex_record(group_id: str, regex: str, topics: Iterable[str], version: int, wall_ms: int) -> CoordinatorRecord:
    """The topics that match a regular expression, as of that version of the metadata."""
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=wall_ms),
    )


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Ends a record that brokers before 4.1 wrote."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """A member goes; in the order in which the records may be replayed."""
    return [
        current_assignment_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[CoordinatorRecord]:
    """A group goes, with all its members."""
    members = list(member_ids)
    return [
        *(current_assignment_tombstone(group_id, member_id) for member_id in members),
        *(target_tombstone(group_id, member_id) for member_id in members),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(member_tombstone(group_id, member_id) for member_id in members),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        partition_metadata_tombstone(group_id),
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def current_assignment_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(
        current.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
    )


def target_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def member_tombstone(group_id: str, member_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(metadata.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
