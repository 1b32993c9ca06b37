"""Metadata (API key 3): lists the brokers and the leaders and replicas of topics, and may create a topic asked for."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT16, INT32, STRING, UUID, Array


class MetadataRequestTopic(Struct):
    topic_id: bytes = field(UUID, "10+", ignorable=True)
    name: str | None = field(STRING, "0+", nullable="10+")


class MetadataRequest(Message, api_key=3, versions="0-13", flexible_from=9):
    """The request, versions 0 to 13."""

    topics: list[MetadataRequestTopic] | None = field(Array(MetadataRequestTopic), "0+", nullable="1+")
    allow_auto_topic_creation: bool = field(BOOL, "4+", default=True)
    include_cluster_authorized_operations: bool = field(BOOL, "8-10")
    include_topic_authorized_operations: bool = field(BOOL, "8+")


class MetadataResponseBroker(Struct):
    node_id: int = field(INT32, "0+")
    host: str = field(STRING, "0+")
    port: int = field(INT32, "0+")
    rack: str | None = field(STRING, "1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = field(INT16, "0+")
    partition_index: int = field(INT32, "0+")
    leader_id: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "7+", default=-1, ignorable=True)
    replica_nodes: list[int] = field(Array(INT32), "0+")
    isr_nodes: list[int] = field(Array(INT32), "0+")
    offline_replicas: list[int] = field(Array(INT32), "5+", ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int = field(INT16, "0+")
    name: str | None = field(STRING, "0+", nullable="12+")
    topic_id: bytes = field(UUID, "10+", ignorable=True)
    is_internal: bool = field(BOOL, "1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field(Array(MetadataResponsePartition, lasting=True), "0+")
    topic_authorized_operations: int = field(INT32, "8+", default=-0x80000000)


class MetadataResponse(Message, api_key=3, versions="0-13", flexible_from=9):
    """The response, versions 0 to 13."""

    throttle_time_ms: int = field(INT32, "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field(Array(MetadataResponseBroker), "0+")
    cluster_id: str | None = field(STRING, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = field(INT32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field(Array(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = field(INT32, "8-10", default=-0x80000000)
    error_code: int = field(INT16, "13+", ignorable=True)
