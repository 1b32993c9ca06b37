"""ConsumerGroupMetadata (record type 3): a consumer group's epoch (KIP-848)."""

from __future__ import annotations

from kwire.protocol.schema import Message, field
from kwire.protocol.types import INT32, INT64, STRING


class ConsumerGroupMetadataKey(Message, api_key=3, versions="0"):
    """The key."""

    group_id: str = field(STRING, "0")


class ConsumerGroupMetadataValue(Message, api_key=3, versions="0", flexible_from=0):
    """The value, version 0. `metadata_hash` is that of the topics subscribed to (KIP-1101)."""

    epoch: int = field(INT32, "0+")
    metadata_hash: int = field(INT64, "0+", tag=0)
