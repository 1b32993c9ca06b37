"""OffsetForLeaderEpoch (API key 23): tells where a leader epoch ends in the log of a partition."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, INT64, STRING, Array


class OffsetForLeaderPartition(Struct):
    partition: int = field(INT32, "0+")
    current_leader_epoch: int = field(INT32, "2+", default=-1, ignorable=True)
    leader_epoch: int = field(INT32, "0+")


class OffsetForLeaderTopic(Struct):
    topic: str = field(STRING, "0+")
    partitions: list[OffsetForLeaderPartition] = field(Array(OffsetForLeaderPartition), "0+")


class OffsetForLeaderEpochRequest(Message, api_key=23, versions="2-4", flexible_from=4):
    """The request, versions 2 to 4."""

    replica_id: int = field(INT32, "3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field(Array(OffsetForLeaderTopic), "0+")


class EpochEndOffset(Struct):
    error_code: int = field(INT16, "0+")
    partition: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "1+", default=-1, ignorable=True)
    end_offset: int = field(INT64, "0+", default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: str = field(STRING, "0+")
    partitions: list[EpochEndOffset] = field(Array(EpochEndOffset), "0+")


class OffsetForLeaderEpochResponse(Message, api_key=23, versions="2-4", flexible_from=4):
    """The response, versions 2 to 4."""

    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field(Array(OffsetForLeaderTopicResult), "0+")
