"""ConsumerGroupRegularExpression (record type 16): the topics that a subscribed regular expression has resolved to."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT64, STRING, Array


class ConsumerGroupRegularExpressionKey(Message, api_key=16, versions="0"):
    """The key."""

    group_id: str = field(STRING, "0")
    regular_expression: str = field(STRING, "0")


class ConsumerGroupRegularExpressionValue(Message, api_key=16, versions="0", flexible_from=0):
    """The value, version 0. `version` is that of the metadata image it was resolved against, `timestamp` in ms."""

    topics: list[str] = field(Array(STRING), "0+")
    version: int = field(INT64, "0+")
    timestamp: int = field(INT64, "0+")
