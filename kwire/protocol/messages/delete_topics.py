"""DeleteTopics (API key 20): deletes topics, by name or by id."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT16, INT32, STRING, UUID, Array


class DeleteTopicState(Struct):
    name: str | None = field(STRING, "6+", nullable="6+", default=None)
    topic_id: bytes = field(UUID, "6+")


class DeleteTopicsRequest(Message, api_key=20, versions="1-6", flexible_from=4):
    """The request, versions 1 to 6."""

    topics: list[DeleteTopicState] = field(Array(DeleteTopicState), "6+")
    topic_names: list[str] = field(Array(STRING), "0-5", ignorable=True)
    timeout_ms: int = field(INT32, "0+")


class DeletableTopicResult(Struct):
    name: str | None = field(STRING, "0+", nullable="6+")
    topic_id: bytes = field(UUID, "6+", ignorable=True)
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Message, api_key=20, versions="1-6", flexible_from=4):
    """The response, versions 1 to 6."""

    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    responses: list[DeletableTopicResult] = field(Array(DeletableTopicResult), "0+")
