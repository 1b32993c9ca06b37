"""OffsetCommit (record type 1): the offset a group has committed for a partition."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT32, INT64, STRING, UUID


class OffsetCommitKey(Message, api_key=1, versions="0"):
    """The key."""

    group: str = field(STRING, "0")
    topic: str = field(STRING, "0")
    partition: int = field(INT32, "0")


class OffsetCommitValue(Message, api_key=1, versions="0-4", flexible_from=4):
    """The value, versions 0 to 4. Version 1 alone carries `expire_timestamp`."""

    offset: int = field(INT64, "0+")
    leader_epoch: int = field(INT32, "3+", default=-1, ignorable=True)
    metadata: str = field(STRING, "0+")
    commit_timestamp: int = field(INT64, "0+")
    expire_timestamp: int = field(INT64, "1", default=-1, ignorable=True)
    topic_id: bytes = field(UUID, "4+", tag=0, ignorable=True)
