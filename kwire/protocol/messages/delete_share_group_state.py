"""DeleteShareGroupState (API key 86): deletes the stored state of share partitions."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, STRING, UUID, Array


class PartitionData(Struct):
    partition: int = field(INT32, "0+")


class DeleteStateData(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[PartitionData] = field(Array(PartitionData), "0+")


class DeleteShareGroupStateRequest(Message, api_key=86, versions="0", flexible_from=0):
    """The request, version 0."""

    group_id: str = field(STRING, "0+")
    topics: list[DeleteStateData] = field(Array(DeleteStateData), "0+")


class PartitionResult(Struct):
    partition: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)


class DeleteStateResult(Struct):
    topic_id: bytes = field(UUID, "0+")
    partitions: list[PartitionResult] = field(Array(PartitionResult), "0+")


class DeleteShareGroupStateResponse(Message, api_key=86, versions="0", flexible_from=0):
    """The response, version 0."""

    results: list[DeleteStateResult] = field(Array(DeleteStateResult), "0+")
