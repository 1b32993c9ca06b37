"""DescribeTopicPartitions (API key 75): describes topics page by page, eligible leader replicas included."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT16, INT32, STRING, UUID, Array


class TopicRequest(Struct):
    name: str = field(STRING, "0+")


class Cursor(Struct):
    topic_name: str = field(STRING, "0+")
    partition_index: int = field(INT32, "0+")


class DescribeTopicPartitionsRequest(Message, api_key=75, versions="0", flexible_from=0):
    """The request, version 0."""

    topics: list[TopicRequest] = field(Array(TopicRequest), "0+")
    response_partition_limit: int = field(INT32, "0+", default=2000)
    cursor: Cursor | None = field(Cursor, "0+", nullable="0+", default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = field(INT16, "0+")
    partition_index: int = field(INT32, "0+")
    leader_id: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "0+", default=-1, ignorable=True)
    replica_nodes: list[int] = field(Array(INT32), "0+")
    isr_nodes: list[int] = field(Array(INT32), "0+")
    eligible_leader_replicas: list[int] | None = field(Array(INT32), "0+", nullable="0+", default=None)
    last_known_elr: list[int] | None = field(Array(INT32), "0+", nullable="0+", default=None)
    offline_replicas: list[int] = field(Array(INT32), "0+", ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = field(INT16, "0+")
    name: str | None = field(STRING, "0+", nullable="0+")
    topic_id: bytes = field(UUID, "0+", ignorable=True)
    is_internal: bool = field(BOOL, "0+", ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(
        Array(DescribeTopicPartitionsResponsePartition), "0+"
    )
    topic_authorized_operations: int = field(INT32, "0+", default=-0x80000000)


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(Array(DescribeTopicPartitionsResponseTopic), "0+")
    next_cursor: Cursor | None = field(Cursor, "0+", nullable="0+", default=None)
