"""DescribeQuorum (API key 55): tells the state of the KRaft quorum."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, INT64, STRING, UINT16, UUID, Array


class PartitionData(Struct):
    partition_index: int = field(INT32, "0+")


class TopicData(Struct):
    topic_name: str = field(STRING, "0+")
    partitions: list[PartitionData] = field(Array(PartitionData), "0+")


class DescribeQuorumRequest(Message, api_key=55, versions="0-2", flexible_from=0):
    """The request, versions 0 to 2."""

    topics: list[TopicData] = field(Array(TopicData), "0+")


class ReplicaState(Struct):
    replica_id: int = field(INT32, "0+")
    replica_directory_id: bytes = field(UUID, "2+")
    log_end_offset: int = field(INT64, "0+")
    last_fetch_timestamp: int = field(INT64, "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(INT64, "1+", default=-1, ignorable=True)


class ResponsePartitionData(Struct):
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "2+", nullable="2+", ignorable=True)
    leader_id: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "0+")
    high_watermark: int = field(INT64, "0+")
    current_voters: list[ReplicaState] = field(Array(ReplicaState), "0+")
    observers: list[ReplicaState] = field(Array(ReplicaState), "0+")


class ResponseTopicData(Struct):
    topic_name: str = field(STRING, "0+")
    partitions: list[ResponsePartitionData] = field(Array(ResponsePartitionData), "0+")


class Listener(Struct):
    name: str = field(STRING, "2+")
    host: str = field(STRING, "2+")
    port: int = field(UINT16, "2+")


class Node(Struct):
    node_id: int = field(INT32, "2+")
    listeners: list[Listener] = field(Array(Listener), "2+")


class DescribeQuorumResponse(Message, api_key=55, versions="0-2", flexible_from=0):
    """The response, versions 0 to 2."""

    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "2+", nullable="2+", ignorable=True)
    topics: list[ResponseTopicData] = field(Array(ResponseTopicData), "0+")
    nodes: list[Node] = field(Array(Node), "2+")
