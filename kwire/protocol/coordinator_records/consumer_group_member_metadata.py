"""ConsumerGroupMemberMetadata (record type 5): who a member of a consumer group is, and what it subscribes to."""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BYTES, INT32, STRING, Array, Buffer


class ConsumerGroupMemberMetadataKey(Message, api_key=5, versions="0"):
    """The key."""

    group_id: str = field(STRING, "0")
    member_id: str = field(STRING, "0")


class ClassicProtocol(Struct):
    name: str = field(STRING, "0+")
    metadata: Buffer = field(BYTES, "0+")


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = field(INT32, "0+")
    supported_protocols: list[ClassicProtocol] = field(Array(ClassicProtocol), "0+")


class ConsumerGroupMemberMetadataValue(Message, api_key=5, versions="0", flexible_from=0):
    """The value, version 0.

    `classic_member_metadata` is None for a member that speaks the consumer protocol. As in Kafka that is not its
    default, so None must be given, and is written.
    """

    instance_id: str | None = field(STRING, "0+", nullable="0+")
    rack_id: str | None = field(STRING, "0+", nullable="0+")
    client_id: str = field(STRING, "0+")
    client_host: str = field(STRING, "0+")
    subscribed_topic_names: list[str] = field(Array(STRING), "0+")
    subscribed_topic_regex: str | None = field(STRING, "0+", nullable="0+")
    rebalance_timeout_ms: int = field(INT32, "0+", default=-1)
    server_assignor: str | None = field(STRING, "0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = field(ClassicMemberMetadata, "0+", nullable="0+", tag=0)
