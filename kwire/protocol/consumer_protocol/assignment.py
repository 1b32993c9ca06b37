"""ConsumerProtocolAssignment: what a consumer gets, in SyncGroup."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BYTES, INT32, STRING, Array, Buffer


class TopicPartition(Struct):
    topic: str = field(STRING, "0+")
    partitions: list[int] = field(Array(INT32), "0+")


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """Versions 0 to 3, all alike. Sent with an int16 of its version before it, as the subscription."""

    assigned_partitions: list[TopicPartition] = field(Array(TopicPartition), "0+")
    user_data: Buffer | None = field(BYTES, "0+", nullable="0+", default=None)
