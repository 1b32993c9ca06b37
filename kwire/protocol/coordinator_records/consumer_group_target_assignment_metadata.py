"""ConsumerGroupTargetAssignmentMetadata (record type 6): the epoch of a consumer group's target assignment."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT32, INT64, STRING


class ConsumerGroupTargetAssignmentMetadataKey(Message, api_key=6, versions="0"):
    """The key."""

    group_id: str = field(STRING, "0")


class ConsumerGroupTargetAssignmentMetadataValue(Message, api_key=6, versions="0", flexible_from=0):
    """The value, version 0. `assignment_timestamp` (ms) is when the assignor had finished (KIP-1263)."""

    assignment_epoch: int = field(INT32, "0+")
    assignment_timestamp: int = field(INT64, "0+", tag=0, ignorable=True)
