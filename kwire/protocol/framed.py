"""Records without a key, whose value says itself what it is: those of KRaft's metadata and of remote log metadata.

frame version  unsigned varint    1
record type    unsigned varint
version        unsigned varint    of the message
the message, in that version
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.protocol import codec
from kwire.protocol.codec.varints import read_varint
from kwire.protocol.schema import Message
from kwire.protocol.types import Buffer

_FRAME_VERSION = 1


class UnknownRecord(ValueError):
    """A frame, or a type of record, that this version of kwire does not know: written by a newer Apache Kafka."""


class Frame(NamedTuple):
    """What stands before the message."""

    record_type: int
    version: int
    position: int
    """Where the message begins."""


def encode_framed(message: Message, version: int) -> bytes:
    """A record's value. Raises as `codec.encode`."""
    head = bytes((_FRAME_VERSION, message.api_key, version))  # none of them exceeds what one byte holds
    return head + codec.encode(message, version)


def read_frame(value: Buffer) -> Frame:
    """Raises UnknownRecord for an unknown frame version, MalformedError where the value ends before the message."""
    try:
        frame_version, position = read_varint(value, 0)
        if frame_version != _FRAME_VERSION:
            raise UnknownRecord(f"frame version {frame_version} of a record is not known")
        record_type, position = read_varint(value, position)
        version, position = read_varint(value, position)
    except IndexError:
        raise codec.MalformedError("a record ends in the middle of its frame") from None
    return Frame(record_type, version, position)
