"""LegacyOffsetCommit (record type 0): an offset committed to a broker before 0.9, read as an OffsetCommit."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT32, INT64, STRING


class LegacyOffsetCommitKey(Message, api_key=0, versions="0"):
    """The key."""

    group: str = field(STRING, "0")
    topic: str = field(STRING, "0")
    partition: int = field(INT32, "0")


class LegacyOffsetCommitValue(Message, api_key=0, versions="0"):
    """The value, version 0."""

    offset: int = field(INT64, "0")
    metadata: str = field(STRING, "0")
    commit_timestamp: int = field(INT64, "0")
