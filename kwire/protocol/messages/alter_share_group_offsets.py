"""AlterShareGroupOffsets (API key 91): sets the start offsets of a share group."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, INT64, STRING, UUID, Array


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = field(INT32, "0+")
    start_offset: int = field(INT64, "0+")


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(STRING, "0+")
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(
        Array(AlterShareGroupOffsetsRequestPartition), "0+"
    )


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions="0", flexible_from=0):
    """The request, version 0."""

    group_id: str = field(STRING, "0+")
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(Array(AlterShareGroupOffsetsRequestTopic), "0+")


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(STRING, "0+")
    topic_id: bytes = field(UUID, "0+")
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(
        Array(AlterShareGroupOffsetsResponsePartition), "0+"
    )


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(Array(AlterShareGroupOffsetsResponseTopic), "0+")
