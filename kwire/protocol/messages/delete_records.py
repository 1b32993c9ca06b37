"""DeleteRecords (API key 21): raises the log start offset of partitions."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, INT64, STRING, Array


class DeleteRecordsPartition(Struct):
    partition_index: int = field(INT32, "0+")
    offset: int = field(INT64, "0+")


class DeleteRecordsTopic(Struct):
    name: str = field(STRING, "0+")
    partitions: list[DeleteRecordsPartition] = field(Array(DeleteRecordsPartition), "0+")


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible_from=2):
    """The request, versions 0 to 2."""

    topics: list[DeleteRecordsTopic] = field(Array(DeleteRecordsTopic), "0+")
    timeout_ms: int = field(INT32, "0+")


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = field(INT32, "0+")
    low_watermark: int = field(INT64, "0+")
    error_code: int = field(INT16, "0+")


class DeleteRecordsTopicResult(Struct):
    name: str = field(STRING, "0+")
    partitions: list[DeleteRecordsPartitionResult] = field(Array(DeleteRecordsPartitionResult), "0+")


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible_from=2):
    """The response, versions 0 to 2."""

    throttle_time_ms: int = field(INT32, "0+")
    topics: list[DeleteRecordsTopicResult] = field(Array(DeleteRecordsTopicResult), "0+")
