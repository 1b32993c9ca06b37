"""WriteShareGroupState (API key 85): changes the stored state of share partitions."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT8, INT16, INT32, INT64, STRING, UUID, Array


class StateBatch(Struct):
    first_offset: int = field(INT64, "0+")
    last_offset: int = field(INT64, "0+")
    delivery_state: int = field(INT8, "0+")
    delivery_count: int = field(INT16, "0+")


class PartitionData(Struct):
    partition: int = field(INT32, "0+")
    state_epoch: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "0+")
    start_offset: int = field(INT64, "0+")
    delivery_complete_count: int = field(INT32, "1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = field(Array(StateBatch), "0+")


class WriteStateData(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[PartitionData] = field(Array(PartitionData), "0+")


class WriteShareGroupStateRequest(Message, api_key=85, versions="0-1", flexible_from=0):
    """The request, versions 0 to 1."""

    group_id: str = field(STRING, "0+")
    topics: list[WriteStateData] = field(Array(WriteStateData), "0+")


class PartitionResult(Struct):
    partition: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)


class WriteStateResult(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[PartitionResult] = field(Array(PartitionResult), "0+")


class WriteShareGroupStateResponse(Message, api_key=85, versions="0-1", flexible_from=0):
    """The response, versions 0 to 1."""

    results: list[WriteStateResult] = field(Array(WriteStateResult), "0+")
