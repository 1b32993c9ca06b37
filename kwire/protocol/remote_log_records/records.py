"""Their values: the copy of a segment begins, goes into another state; a partition is deleted.

Offsets are inclusive, times ms since the epoch.
"""

from __future__ import annotations

from kwire.protocol.schema import Message, Struct, field
from kwire.protocol.types import BOOL, BYTES, INT8, INT32, INT64, STRING, UUID, Array, Buffer


class TopicIdPartitionEntry(Struct):
    name: str = field(STRING, "0+")
    id: bytes = field(UUID, "0+")
    partition: int = field(INT32, "0+")


class RemoteLogSegmentIdEntry(Struct):
    topic_id_partition: TopicIdPartitionEntry = field(TopicIdPartitionEntry, "0+")
    id: bytes = field(UUID, "0+")


class SegmentLeaderEpochEntry(Struct):
    leader_epoch: int = field(INT32, "0+")
    offset: int = field(INT64, "0+")


class RemoteLogSegmentMetadataRecord(Message, api_key=0, versions="0", flexible_from=0):
    """The copy of a segment begins."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = field(RemoteLogSegmentIdEntry, "0+")
    start_offset: int = field(INT64, "0+")
    end_offset: int = field(INT64, "0+")
    broker_id: int = field(INT32, "0+")
    max_timestamp_ms: int = field(INT64, "0+")
    event_timestamp_ms: int = field(INT64, "0+")
    segment_leader_epochs: list[SegmentLeaderEpochEntry] = field(Array(SegmentLeaderEpochEntry), "0+")
    segment_size_in_bytes: int = field(INT32, "0+")
    custom_metadata: Buffer | None = field(BYTES, "0+", nullable="0+", default=None)
    remote_log_segment_state: int = field(INT8, "0+")
    txn_index_empty: bool = field(BOOL, "0+", tag=0)


class RemoteLogSegmentMetadataUpdateRecord(Message, api_key=1, versions="0", flexible_from=0):
    """The state of a copied segment changes."""

    remote_log_segment_id: RemoteLogSegmentIdEntry = field(RemoteLogSegmentIdEntry, "0+")
    broker_id: int = field(INT32, "0+")
    event_timestamp_ms: int = field(INT64, "0+")
    custom_metadata: Buffer | None = field(BYTES, "0+", nullable="0+", default=None)
    remote_log_segment_state: int = field(INT8, "0+")


class RemotePartitionDeleteMetadataRecord(Message, api_key=2, versions="0", flexible_from=0):
    """A partition is deleted, and with it all that was copied of it."""

    topic_id_partition: TopicIdPartitionEntry = field(TopicIdPartitionEntry, "0+")
    broker_id: int = field(INT32, "0+")
    event_timestamp_ms: int = field(INT64, "0+")
    remote_partition_delete_state: int = field(INT8, "0+")
