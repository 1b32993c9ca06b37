"""AlterPartition (API key 56): asks the controller for a change of the in-sync replicas, from a leader."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, INT64, UUID, Array


class BrokerState(Struct):
    broker_id: int = field(INT32, "3+")
    broker_epoch: int = field(INT64, "3+", default=-1)


class PartitionData(Struct):
    partition_index: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "0+")
    new_isr: list[int] = field(Array(INT32), "0-2")
    new_isr_with_epochs: list[BrokerState] = field(Array(BrokerState), "3+")
    leader_recovery_state: int = field(INT8, "1+")
    partition_epoch: int = field(INT32, "0+")


class TopicData(Struct):
    topic_id: bytes = field(UUID, "2+", ignorable=True)
    partitions: list[PartitionData] = field(Array(PartitionData), "0+")


class AlterPartitionRequest(Message, api_key=56, versions="2-3", flexible_from=0):
    """The request, versions 2 to 3."""

    broker_id: int = field(INT32, "0+")
    broker_epoch: int = field(INT64, "0+", default=-1)
    topics: list[TopicData] = field(Array(TopicData), "0+")


class ResponsePartitionData(Struct):
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    leader_id: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "0+")
    isr: list[int] = field(Array(INT32), "0+")
    leader_recovery_state: int = field(INT8, "1+", ignorable=True)
    partition_epoch: int = field(INT32, "0+")


class ResponseTopicData(Struct):
    topic_id: bytes = field(UUID, "2+", ignorable=True)
    partitions: list[ResponsePartitionData] = field(Array(ResponsePartitionData), "0+")


class AlterPartitionResponse(Message, api_key=56, versions="2-3", flexible_from=0):
    """The response, versions 2 to 3."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    topics: list[ResponseTopicData] = field(Array(ResponseTopicData), "0+")
