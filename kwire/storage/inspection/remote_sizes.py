"""How much of the partitions lies in remote storage, by the records of `__remote_log_metadata` in log dirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kwire.ports.files import FileSystem
from kwire.ports.input import open_input
from kwire.protocol.codec.errors import MalformedError, UnsupportedVersionError
from kwire.protocol.framed import UnknownRecord
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import crc_matches
from kwire.protocol.records.record import iter_records
from kwire.protocol.remote_log_records.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
)
from kwire.protocol.remote_log_records.serde import RemoteLogRecord, decode_record
from kwire.storage import layout
from kwire.storage.inspection.batches import NoBatch, batches
from kwire.storage.tiered.remote_segment import SegmentState

REMOTE = "remote"
"""The tier of what lies in an object store."""

_TOPIC = "__remote_log_metadata"


class RemoteSize(NamedTuple):
    """What there is of one partition; a segment that was copied twice counts twice, as it takes room twice."""

    topic: str
    partition: int
    segments: int
    log_bytes: int


def remote_sizes(files: FileSystem, log_dirs: Iterable[str]) -> list[RemoteSize]:
    """Those of all partitions whose records lie in these dirs, as far as they can be read."""
    segments: dict[bytes, tuple[str, int, int]] = {}
    """By id: topic, partition, bytes; of those whose copies are finished and not being deleted."""
    begun: dict[bytes, tuple[str, int, int]] = {}
    for log_dir in log_dirs:
        for name in files.list(log_dir):
            parsed = layout.parse_partition_dir(name)
            if parsed is not None and not parsed.suffix and parsed.topic == _TOPIC:
                for record in _records(files, f"{log_dir}/{name}"):
                    _take_up(record, begun, segments)
    found: dict[tuple[str, int], RemoteSize] = {}
    for topic, partition, size in segments.values():
        before = found.get((topic, partition), RemoteSize(topic, partition, 0, 0))
        found[topic, partition] = RemoteSize(topic, partition, before.segments + 1, before.log_bytes + size)
    return [found[key] for key in sorted(found)]


def _take_up(
    record: RemoteLogRecord, begun: dict[bytes, tuple[str, int, int]], segments: dict[bytes, tuple[str, int, int]]
) -> None:
    if isinstance(record, RemoteLogSegmentMetadataRecord):
        place = record.remote_log_segment_id.topic_id_partition
        begun[record.remote_log_segment_id.id] = place.name, place.partition, record.segment_size_in_bytes
    elif isinstance(record, RemoteLogSegmentMetadataUpdateRecord):
        segment_id = record.remote_log_segment_id.id
        segments.pop(segment_id, None)
        if record.remote_log_segment_state == SegmentState.COPY_SEGMENT_FINISHED and segment_id in begun:
            segments[segment_id] = begun[segment_id]


def _records(files: FileSystem, folder: str) -> Iterator[RemoteLogRecord]:
    """Up to the first batch that cannot be read: it is being written, or `kwire log verify` tells of it."""
    for name in files.list(folder):
        if not name.endswith(layout.LOG):
            continue
        with open_input(f"{folder}/{name}") as file:
            try:
                for _, header, batch in batches(file, files.file_size(f"{folder}/{name}")):
                    if not crc_matches(header, batch):
                        return
                    for record in () if header.control else iter_records(bytes(batch)):
                        yield decode_record(record.value or b"")
            except (NoBatch, CorruptBatchError, MalformedError, UnsupportedVersionError, UnknownRecord):
                return
