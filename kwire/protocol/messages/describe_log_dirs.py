"""DescribeLogDirs (API key 35): tells the sizes of the replicas in each log dir of a broker."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT16, INT32, INT64, STRING, Array


class DescribableLogDirTopic(Struct):
    topic: str = field(STRING, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class DescribeLogDirsRequest(Message, api_key=35, versions="1-5", flexible_from=2):
    """The request, versions 1 to 5."""

    topics: list[DescribableLogDirTopic] | None = field(Array(DescribableLogDirTopic), "0+", nullable="0+")


class DescribeLogDirsPartition(Struct):
    partition_index: int = field(INT32, "0+")
    partition_size: int = field(INT64, "0+")
    offset_lag: int = field(INT64, "0+")
    is_future_key: bool = field(BOOL, "0+")


class DescribeLogDirsTopic(Struct):
    name: str = field(STRING, "0+")
    partitions: list[DescribeLogDirsPartition] = field(Array(DescribeLogDirsPartition), "0+")


class DescribeLogDirsResult(Struct):
    error_code: int = field(INT16, "0+")
    log_dir: str = field(STRING, "0+")
    topics: list[DescribeLogDirsTopic] = field(Array(DescribeLogDirsTopic), "0+")
    total_bytes: int = field(INT64, "4+", default=-1, ignorable=True)
    usable_bytes: int = field(INT64, "4+", default=-1, ignorable=True)
    is_cordoned: bool = field(BOOL, "5+", ignorable=True)


class DescribeLogDirsResponse(Message, api_key=35, versions="1-5", flexible_from=2):
    """The response, versions 1 to 5."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field(Array(DescribeLogDirsResult), "0+")
