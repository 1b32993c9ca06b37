"""ShareGroupHeartbeat (API key 76): membership of a share group (KIP-932)."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, STRING, UUID, Array


class ShareGroupHeartbeatRequest(Message, api_key=76, versions="1", flexible_from=0):
    """The request, version 1."""

    group_id: str = field(STRING, "0+")
    member_id: str = field(STRING, "0+")
    member_epoch: int = field(INT32, "0+")
    rack_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = field(Array(STRING), "0+", nullable="0+", default=None)


class TopicPartitions(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions), "0+")


class ShareGroupHeartbeatResponse(Message, api_key=76, versions="1", flexible_from=0):
    """The response, version 1."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    member_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    member_epoch: int = field(INT32, "0+")
    heartbeat_interval_ms: int = field(INT32, "0+")
    assignment: Assignment | None = field(Assignment, "0+", nullable="0+", default=None)
