"""ConsumerGroupHeartbeat (API key 68): membership of a consumer group, and its assignments (KIP-848)."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, STRING, UUID, Array


class TopicPartitions(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions="0-1", flexible_from=0):
    """The request, versions 0 to 1."""

    group_id: str = field(STRING, "0+")
    member_id: str = field(STRING, "0+")
    member_epoch: int = field(INT32, "0+")
    instance_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    rack_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = field(INT32, "0+", default=-1)
    subscribed_topic_names: list[str] | None = field(Array(STRING), "0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = field(STRING, "1+", nullable="1+", default=None)
    server_assignor: str | None = field(STRING, "0+", nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = field(Array(TopicPartitions), "0+", nullable="0+", default=None)


class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = field(Array(TopicPartitions), "0+")


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1", flexible_from=0):
    """The response, versions 0 to 1."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    member_id: str | None = field(STRING, "0+", nullable="0+", default=None)
    member_epoch: int = field(INT32, "0+")
    heartbeat_interval_ms: int = field(INT32, "0+")
    assignment: Assignment | None = field(Assignment, "0+", nullable="0+", default=None)
