"""DeleteShareGroupOffsets (API key 92): deletes the start offsets of a share group."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, STRING, UUID, Array


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(STRING, "0+")


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions="0", flexible_from=0):
    """The request, version 0."""

    group_id: str = field(STRING, "0+")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(Array(DeleteShareGroupOffsetsRequestTopic), "0+")


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(STRING, "0+")
    topic_id: bytes = field(UUID, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions="0", flexible_from=0):
    """The response, version 0."""

    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(Array(DeleteShareGroupOffsetsResponseTopic), "0+")
