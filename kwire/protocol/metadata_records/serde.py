"""The value of a record of __cluster_metadata as a message.

frame version  unsigned varint    1
record type    unsigned varint
version        unsigned varint    of the message
the message, in that version
"""

from __future__ import annotations

from kwire.protocol import codec
from kwire.protocol.codec.errors import MalformedError
from kwire.protocol.metadata_records.record_types import METADATA_RECORD_TYPES, PASSING_RECORD_TYPES
from kwire.protocol.schema import Message
from kwire.protocol.types import Buffer

_FRAME_VERSION = 1


class UnknownMetadataRecord(ValueError):
    """A frame, or a type of record, that this version of kwire does not know: written by a newer Apache Kafka."""


def encode_record(message: Message, version: int) -> bytes:
    """A record's value."""
    head = bytes((_FRAME_VERSION, message.api_key, version))  # none of them exceeds what one byte holds
    return head + codec.encode(message, version)


def decode_record(value: Buffer) -> Message | None:
    """The message; None for a type of PASSING_RECORD_TYPES.

    UnknownMetadataRecord; MalformedError if the bytes are no such message, UnsupportedVersionError for a version that
    is not declared.
    """
    frame_version, position = _unsigned_varint(value, 0)
    if frame_version != _FRAME_VERSION:
        raise UnknownMetadataRecord(f"frame version {frame_version} of a metadata record is not known")
    number, position = _unsigned_varint(value, position)
    version, position = _unsigned_varint(value, position)
    record_type = METADATA_RECORD_TYPES.get(number)
    if record_type is None:
        if number in PASSING_RECORD_TYPES:
            return None
        raise UnknownMetadataRecord(f"metadata record type {number} is not known")
    return codec.decode(record_type, version, value, position)


def _unsigned_varint(data: Buffer, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 35:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise MalformedError("a metadata record ends in the middle of its frame")
