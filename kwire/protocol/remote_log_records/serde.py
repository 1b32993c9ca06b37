"""The values of these records as bytes: `kwire.protocol.framed` tells how they are laid out."""

from __future__ import annotations

from kwire.protocol import codec
from kwire.protocol.framed import UnknownRecord, encode_framed, read_frame
from kwire.protocol.remote_log_records.records import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)
from kwire.protocol.types import Buffer

RemoteLogRecord = (
    RemoteLogSegmentMetadataRecord | RemoteLogSegmentMetadataUpdateRecord | RemotePartitionDeleteMetadataRecord
)

RECORD_TYPES: dict[int, type[RemoteLogRecord]] = {
    0: RemoteLogSegmentMetadataRecord,
    1: RemoteLogSegmentMetadataUpdateRecord,
    2: RemotePartitionDeleteMetadataRecord,
}
"""By number. Kafka's type 3 stands in a file of its own, never in the topic."""

_VERSION = 0


def encode_record(record: RemoteLogRecord) -> bytes:
    """EncodeError if a value does not fit its type."""
    return encode_framed(record, _VERSION)


def decode_record(value: Buffer) -> RemoteLogRecord:
    """UnknownRecord, MalformedError; UnsupportedVersionError for an unknown version."""
    number, version, position = read_frame(value)
    record_type = RECORD_TYPES.get(number)
    if record_type is None:
        raise UnknownRecord(f"remote log metadata record type {number} is not known")
    return codec.decode(record_type, version, value, position)
