"""ConsumerGroupTargetAssignmentMember (record type 7): the partitions a member shall have."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT32, STRING, UUID, Array


class ConsumerGroupTargetAssignmentMemberKey(Message, api_key=7, versions="0"):
    """The key."""

    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


class TopicPartition(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class ConsumerGroupTargetAssignmentMemberValue(Message, api_key=7, versions="0", flexible_from=0):
    """The value, version 0."""

    topic_partitions: list[TopicPartition] = field(Array(TopicPartition), "0+")
