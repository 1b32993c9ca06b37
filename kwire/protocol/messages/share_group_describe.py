"""ShareGroupDescribe (API key 77): tells the state and the members of share groups."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT16, INT32, STRING, UUID, Array


class ShareGroupDescribeRequest(Message, api_key=77, versions="1", flexible_from=0):
    """The request, version 1."""

    group_ids: list[str] = field(Array(STRING), "0+")
    include_authorized_operations: bool = field(BOOL, "0+")


class TopicPartitions(Struct):
    topic_id: bytes = field(UUID, "0+")
    topic_name: str = field(STRING, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions), "0+")


class Member(Struct):
    member_id: str = field(STRING, "0+")
    rack_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    member_epoch: int = field(INT32, "0+")
    client_id: str = field(STRING, "0+")
    client_host: str = field(STRING, "0+")
    subscribed_topic_names: list[str] = field(Array(STRING), "0+")
    assignment: Assignment = field(Assignment, "0+")


class DescribedGroup(Struct):
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    group_id: str = field(STRING, "0+")
    group_state: str = field(STRING, "0+")
    group_epoch: int = field(INT32, "0+")
    assignment_epoch: int = field(INT32, "0+")
    assignor_name: str = field(STRING, "0+")
    members: list[Member] = field(Array(Member), "0+")
    authorized_operations: int = field(INT32, "0+", default=-0x80000000)


class ShareGroupDescribeResponse(Message, api_key=77, versions="1", flexible_from=0):
    """The response, version 1."""

    throttle_time_ms: int = field(INT32, "0+")
    groups: list[DescribedGroup] = field(Array(DescribedGroup), "0+")
