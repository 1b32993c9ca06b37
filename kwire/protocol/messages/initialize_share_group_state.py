"""InitializeShareGroupState (API key 83): makes the stored state of share partitions, from broker to broker."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, INT64, STRING, UUID, Array


class PartitionData(Struct):
    partition: int = field(INT32, "0+")
    state_epoch: int = field(INT32, "0+")
    start_offset: int = field(INT64, "0+")


class InitializeStateData(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[PartitionData] = field(Array(PartitionData), "0+")


class InitializeShareGroupStateRequest(Message, api_key=83, versions="0", flexible_from=0):
    """The request, version 0."""

    group_id: str = field(STRING, "0+")
    topics: list[InitializeStateData] = field(Array(InitializeStateData), "0+")


class PartitionResult(Struct):
    partition: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)


class InitializeStateResult(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[PartitionResult] = field(Array(PartitionResult), "0+")


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0", flexible_from=0):
    """The response, version 0."""

    results: list[InitializeStateResult] = field(Array(InitializeStateResult), "0+")
