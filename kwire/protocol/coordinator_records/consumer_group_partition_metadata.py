"""ConsumerGroupPartitionMetadata (record type 4): the partitions of a group's topics.

Brokers before 4.1 wrote it, and a later one writes its tombstone; the hash in ConsumerGroupMetadata took its place.
"""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import INT32, STRING, UUID, Array


class ConsumerGroupPartitionMetadataKey(Message, api_key=4, versions="0"):
    """The key."""

    group_id: str = field(STRING, "0")


class PartitionMetadata(Struct):
    partition: int = field(INT32, "0+")
    racks: list[str] = field(Array(STRING), "0+")


class TopicMetadata(Struct):
    topic_id: bytes = field(UUID, "0+")
    topic_name: str = field(STRING, "0+")
    num_partitions: int = field(INT32, "0+")
    partition_metadata: list[PartitionMetadata] = field(Array(PartitionMetadata), "0+")


class ConsumerGroupPartitionMetadataValue(Message, api_key=4, versions="0", flexible_from=0):
    """The value, version 0."""

    topics: list[TopicMetadata] = field(Array(TopicMetadata), "0+")
