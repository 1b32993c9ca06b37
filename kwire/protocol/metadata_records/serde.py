"""The value of a record of __cluster_metadata as a message: `kwire.protocol.framed` tells how it is laid out."""

from __future__ import annotations

from kwire.protocol import codec
from kwire.protocol.framed import UnknownRecord, read_frame
from kwire.protocol.metadata_records.record_types import METADATA_RECORD_TYPES, PASSING_RECORD_TYPES
from kwire.protocol.schema import Message
from kwire.protocol.types import Buffer


def decode_record(value: Buffer) -> Message | None:
    """The message; None for a type of PASSING_RECORD_TYPES.

    UnknownRecord; MalformedError if the bytes are no such message, UnsupportedVersionError for a version that is not
    declared.
    """
    number, version, position = read_frame(value)
    record_type = METADATA_RECORD_TYPES.get(number)
    if record_type is None:
        if number in PASSING_RECORD_TYPES:
            return None
        raise UnknownRecord(f"metadata record type {number} is not known")
    return codec.decode(record_type, version, value, position)
