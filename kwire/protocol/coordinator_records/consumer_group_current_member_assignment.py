"""ConsumerGroupCurrentMemberAssignment (record type 8): the partitions a member has, and how far it has come."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT32, STRING, UUID, Array


class ConsumerGroupCurrentMemberAssignmentKey(Message, api_key=8, versions="0"):
    """The key."""

    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


class TopicPartitions(Struct):
    """`assignment_epochs` has one for each of `partitions`; Kafka's default, which is not written, is empty."""

    topic_id: bytes = field(UUID, "0+")
    partitions: list[int] = field(Array(INT32), "0+")
    assignment_epochs: list[int] | None = field(Array(INT32), "0+", nullable="0+", tag=0)


class ConsumerGroupCurrentMemberAssignmentValue(Message, api_key=8, versions="0", flexible_from=0):
    """The value, version 0."""

    member_epoch: int = field(INT32, "0+")
    previous_member_epoch: int = field(INT32, "0+")
    state: int = field(INT8, "0+")
    assigned_partitions: list[TopicPartitions] = field(Array(TopicPartitions), "0+")
    partitions_pending_revocation: list[TopicPartitions] = field(Array(TopicPartitions), "0+")
