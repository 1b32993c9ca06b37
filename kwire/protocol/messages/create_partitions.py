"""CreatePartitions (API key 37): adds partitions to topics."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, INT16, INT32, STRING, Array


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = field(Array(INT32), "0+")


class CreatePartitionsTopic(Struct):
    name: str = field(STRING, "0+")
    count: int = field(INT32, "0+")
    assignments: list[CreatePartitionsAssignment] | None = field(Array(CreatePartitionsAssignment), "0+", nullable="0+")


class CreatePartitionsRequest(Message, api_key=37, versions="0-3", flexible_from=2):
    """The request, versions 0 to 3."""

    topics: list[CreatePartitionsTopic] = field(Array(CreatePartitionsTopic), "0+")
    timeout_ms: int = field(INT32, "0+")
    validate_only: bool = field(BOOL, "0+")


class CreatePartitionsTopicResult(Struct):
    name: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible_from=2):
    """The response, versions 0 to 3."""

    throttle_time_ms: int = field(INT32, "0+")
    results: list[CreatePartitionsTopicResult] = field(Array(CreatePartitionsTopicResult), "0+")
