"""The records of `__remote_log_metadata` about one topic."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from compat_tests.oracle.asking import fetch
from compat_tests.oracle.sides import PATIENCE, POLL, Side
from kwire.metadata.names import REMOTE_LOG_METADATA
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import Record, iter_records
from kwire.protocol.remote_log_records.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)
from kwire.protocol.remote_log_records.serde import decode_record

STATES = ("COPY_STARTED", "COPY_FINISHED", "DELETE_STARTED", "DELETE_FINISHED")
PARTITION_STATES = ("MARKED", "STARTED", "FINISHED")


def records(side: Side) -> list[Record]:
    """All that the topic's only partition has."""
    side.settle_topic(REMOTE_LOG_METADATA, 1)
    found: list[Record] = []
    offset = 0
    while True:
        answer = side.call(fetch(side, REMOTE_LOG_METADATA, offset))
        (partition,) = answer.responses[0].partitions
        assert not partition.error_code, partition
        if not partition.records:
            return found
        for header, blob in iter_batches(bytes(partition.records)):
            found += iter_records(blob)
            offset = header.next_offset


class Story:
    """What the records say of a topic: of each segment by itself, since they are copied and deleted side by side."""

    def __init__(self, side: Side, topic_id: bytes) -> None:
        self._of_kafka = side.is_kafka
        self.segments: dict[bytes, list[Any]] = {}
        self.partition: dict[int, list[str]] = {}
        for record in records(side):
            if record.value is not None:
                self._tell(record, topic_id)

    def _tell(self, record: Record, topic_id: bytes) -> None:
        found = decode_record(record.value or b"")
        outside = {"key": record.key, "headers": record.headers}
        if isinstance(found, RemotePartitionDeleteMetadataRecord):
            if found.topic_id_partition.id == topic_id:
                state = PARTITION_STATES[found.remote_partition_delete_state]
                self.partition.setdefault(found.topic_id_partition.partition, []).append(
                    f"{state} by {found.broker_id}, {outside}"
                )
            return
        assert isinstance(found, RemoteLogSegmentMetadataRecord | RemoteLogSegmentMetadataUpdateRecord)
        if found.remote_log_segment_id.topic_id_partition.id != topic_id:
            return
        told: dict[str, Any] = {
            "state": STATES[found.remote_log_segment_state],
            "partition": found.remote_log_segment_id.topic_id_partition.partition,
            "broker": found.broker_id,
            "custom": found.custom_metadata,
            **outside,
        }
        if isinstance(found, RemoteLogSegmentMetadataRecord):
            told |= {
                "offsets": (found.start_offset, found.end_offset),
                "newest": found.max_timestamp_ms,
                "epochs": [(entry.leader_epoch, entry.offset) for entry in found.segment_leader_epochs],
                "size": found.segment_size_in_bytes,
                "no transactions": found.txn_index_empty,
            }
        story = self.segments.setdefault(found.remote_log_segment_id.id, [])
        # Two tasks of Apache Kafka may begin the same deletion.
        if not (self._of_kafka and story and told["state"] == "DELETE_STARTED" == story[-1]["state"]):
            story.append(told)

    def states(self) -> list[list[str]]:
        return [[told["state"] for told in story] for story in self.segments.values()]


def tell(side: Side, topic_id: bytes, done: Callable[[Story], bool], note: str) -> None:
    """Records the story once it is `done`."""
    deadline = time.monotonic() + PATIENCE
    while not done(story := Story(side, topic_id)):
        assert time.monotonic() < deadline, (side, story.segments, story.partition)
        time.sleep(POLL)
    by_offset = sorted(story.segments.values(), key=lambda told: told[0].get("offsets", ()))
    side.record(f"segments ({note})", dict(enumerate(by_offset)))
    side.record(f"partitions ({note})", story.partition)
