"""What the records of remote log metadata amount to, taken up one after the other."""

from __future__ import annotations

from enum import IntEnum

from kwire.protocol.remote_log_records.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    TopicIdPartitionEntry,
)
from kwire.protocol.remote_log_records.serde import decode_record
from kwire.protocol.types import Buffer
from kwire.storage.tiered.remote_segment import RemoteSegment, SegmentState, TopicIdPartition
from kwire.storage.tiered.remote_segments import RemoteSegments


class DeleteState(IntEnum):
    """RemotePartitionDeleteState."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


class RemoteAccount:
    """What lies in remote storage, by the records of one or more partitions of `__remote_log_metadata`."""

    __slots__ = ("deleted", "mentioned", "partitions")

    def __init__(self) -> None:
        self.partitions: dict[TopicIdPartition, RemoteSegments] = {}
        """Of which there is something."""
        self.mentioned: set[TopicIdPartition] = set()
        """Of which there ever was something."""
        self.deleted: dict[TopicIdPartition, DeleteState] = {}
        """Those whose topics are, or are about to be, deleted."""

    def take_up(self, value: Buffer) -> None:
        """The next record. One that does not fit what is known changes nothing: it came twice, or too late.

        UnknownRecord, MalformedError, UnsupportedVersionError; ValueError for a segment or a state that cannot be.
        """
        record = decode_record(value)
        if isinstance(record, RemoteLogSegmentMetadataRecord):
            of, segment = _partition(record.remote_log_segment_id.topic_id_partition), _segment(record)
            self.partitions.setdefault(of, RemoteSegments()).add(segment)
            self.mentioned.add(of)
        elif isinstance(record, RemoteLogSegmentMetadataUpdateRecord):
            self._update(record)
        else:
            of = _partition(record.topic_id_partition)
            state = DeleteState(record.remote_partition_delete_state)
            if state is DeleteState.DELETE_PARTITION_FINISHED:
                self.deleted.pop(of, None)
                self.partitions.pop(of, None)
                self.mentioned.discard(of)
            else:
                self.deleted[of] = state

    def _update(self, record: RemoteLogSegmentMetadataUpdateRecord) -> None:
        of = _partition(record.remote_log_segment_id.topic_id_partition)
        segments = self.partitions.get(of)
        if segments is not None:
            state = SegmentState(record.remote_log_segment_state)
            segments.update(record.remote_log_segment_id.id, state, record.event_timestamp_ms, record.broker_id)
            if not len(segments):
                del self.partitions[of]


def _segment(record: RemoteLogSegmentMetadataRecord) -> RemoteSegment:
    if not 0 <= record.start_offset <= record.end_offset or not record.segment_leader_epochs:
        raise ValueError(f"a segment of the offsets {record.start_offset} to {record.end_offset} without leader epochs")
    return RemoteSegment(
        record.remote_log_segment_id.id,
        record.start_offset,
        record.end_offset,
        record.max_timestamp_ms,
        record.segment_size_in_bytes,
        tuple((entry.leader_epoch, entry.offset) for entry in record.segment_leader_epochs),
        SegmentState(record.remote_log_segment_state),
        record.broker_id,
        record.event_timestamp_ms,
        not record.txn_index_empty,
    )


def _partition(entry: TopicIdPartitionEntry) -> TopicIdPartition:
    return TopicIdPartition(entry.name, entry.id, entry.partition)
