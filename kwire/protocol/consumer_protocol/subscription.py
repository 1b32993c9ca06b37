"""ConsumerProtocolSubscription: what a consumer wants, in JoinGroup."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BYTES, INT32, STRING, Array, Buffer


class TopicPartition(Struct):
    topic: str = field(STRING, "1+")
    partitions: list[int] = field(Array(INT32), "1+")


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """Versions 0 to 3. Sent with an int16 of its version before it (`encode_version_prefixed`)."""

    topics: list[str] = field(Array(STRING), "0+")
    user_data: Buffer | None = field(BYTES, "0+", nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = field(Array(TopicPartition), "1+", ignorable=True)
    generation_id: int = field(INT32, "2+", default=-1, ignorable=True)
    rack_id: str | None = field(STRING, "3+", nullable="3+", default=None, ignorable=True)
