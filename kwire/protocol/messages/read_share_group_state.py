"""ReadShareGroupState (API key 84): reads the stored state of share partitions."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, INT64, STRING, UUID, Array


class PartitionData(Struct):
    partition: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "0+")


class ReadStateData(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[PartitionData] = field(Array(PartitionData), "0+")


class ReadShareGroupStateRequest(Message, api_key=84, versions="0", flexible_from=0):
    """The request, version 0."""

    group_id: str = field(STRING, "0+")
    topics: list[ReadStateData] = field(Array(ReadStateData), "0+")


class StateBatch(Struct):
    first_offset: int = field(INT64, "0+")
    last_offset: int = field(INT64, "0+")
    delivery_state: int = field(INT8, "0+")
    delivery_count: int = field(INT16, "0+")


class PartitionResult(Struct):
    partition: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    state_epoch: int = field(INT32, "0+")
    start_offset: int = field(INT64, "0+")
    state_batches: list[StateBatch] = field(Array(StateBatch), "0+")


class ReadStateResult(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[PartitionResult] = field(Array(PartitionResult), "0+")


class ReadShareGroupStateResponse(Message, api_key=84, versions="0", flexible_from=0):
    """The response, version 0."""

    results: list[ReadStateResult] = field(Array(ReadStateResult), "0+")
