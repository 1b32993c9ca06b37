"""ElectLeaders (API key 43): elects the preferred, or an unclean, leader of partitions."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, STRING, Array


class TopicPartitions(Struct):
    topic: str = field(STRING, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class ElectLeadersRequest(Message, api_key=43, versions="0-2", flexible_from=2):
    """The request, versions 0 to 2."""

    election_type: int = field(INT8, "1+")
    topic_partitions: list[TopicPartitions] | None = field(Array(TopicPartitions), "0+", nullable="0+")
    timeout_ms: int = field(INT32, "0+", default=60000)


class PartitionResult(Struct):
    partition_id: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = field(STRING, "0+")
    partition_result: list[PartitionResult] = field(Array(PartitionResult), "0+")


class ElectLeadersResponse(Message, api_key=43, versions="0-2", flexible_from=2):
    """The response, versions 0 to 2."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "1+")
    replica_election_results: list[ReplicaElectionResult] = field(Array(ReplicaElectionResult), "0+")
