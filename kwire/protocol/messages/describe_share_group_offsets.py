"""DescribeShareGroupOffsets (API key 90): tells the start offsets of share groups."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, INT64, STRING, UUID, Array


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(STRING, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = field(STRING, "0+")
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(
        Array(DescribeShareGroupOffsetsRequestTopic), "0+", nullable="0+"
    )


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions="0-1", flexible_from=0):
    """The request, versions 0 to 1."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(Array(DescribeShareGroupOffsetsRequestGroup), "0+")


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = field(INT32, "0+")
    start_offset: int = field(INT64, "0+")
    leader_epoch: int = field(INT32, "0+")
    lag: int = field(INT64, "1+", default=-1, ignorable=True)
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(STRING, "0+")
    topic_id: bytes = field(UUID, "0+")
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(
        Array(DescribeShareGroupOffsetsResponsePartition), "0+"
    )


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = field(STRING, "0+")
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(Array(DescribeShareGroupOffsetsResponseTopic), "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)


class DescribeShareGroupOffsetsResponse(Message, api_key=90, versions="0-1", flexible_from=0):
    """The response, versions 0 to 1."""

    throttle_time_ms: int = field(INT32, "0+")
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(Array(DescribeShareGroupOffsetsResponseGroup), "0+")
