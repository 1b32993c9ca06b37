"""The values of these records as bytes: the record's type and version, both varints, before the message.

A record has no key.
"""

from __future__ import annotations

from kwire.protocol import codec
from kwire.protocol.codec.runtime import read_varint, varint
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
    return varint(record.api_key) + varint(_VERSION) + codec.encode(record, _VERSION)


def decode_record(value: Buffer) -> RemoteLogRecord | None:
    """None for a type that is not declared. MalformedError; UnsupportedVersionError for an unknown version."""
    try:
        number, position = read_varint(value, 0)
        version, position = read_varint(value, position)
    except IndexError:
        raise codec.MalformedError(f"a record's type and version in {len(value)} bytes") from None
    record_type = RECORD_TYPES.get(number)
    return None if record_type is None else codec.decode(record_type, version, value, position)
