"""AlterPartitionReassignments (API key 45): starts or cancels moving partitions to other brokers."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT16, INT32, STRING, Array


class ReassignablePartition(Struct):
    partition_index: int = field(INT32, "0+")
    replicas: list[int] | None = field(Array(INT32), "0+", nullable="0+", default=None)


class ReassignableTopic(Struct):
    name: str = field(STRING, "0+")
    partitions: list[ReassignablePartition] = field(Array(ReassignablePartition), "0+")


class AlterPartitionReassignmentsRequest(Message, api_key=45, versions="0-1", flexible_from=0):
    """The request, versions 0 to 1."""

    timeout_ms: int = field(INT32, "0+", default=60000)
    allow_replication_factor_change: bool = field(BOOL, "1+", default=True)
    topics: list[ReassignableTopic] = field(Array(ReassignableTopic), "0+")


class ReassignablePartitionResponse(Struct):
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


class ReassignableTopicResponse(Struct):
    name: str = field(STRING, "0+")
    partitions: list[ReassignablePartitionResponse] = field(Array(ReassignablePartitionResponse), "0+")


class AlterPartitionReassignmentsResponse(Message, api_key=45, versions="0-1", flexible_from=0):
    """The response, versions 0 to 1."""

    throttle_time_ms: int = field(INT32, "0+")
    allow_replication_factor_change: bool = field(BOOL, "1+", default=True, ignorable=True)
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = field(Array(ReassignableTopicResponse), "0+")
