"""Messages that do not travel in a request of their own say their version themselves: an int16 before them."""

from __future__ import annotations

from struct import Struct
from typing import TypeVar

from kwire.protocol import codec
from kwire.protocol.schema import Message
from kwire.protocol.types import Buffer

M = TypeVar("M", bound=Message)

INT16 = Struct(">h")


def encode_version_prefixed(message: Message, version: int) -> bytes:
    """The version and the message. Raises as `codec.encode`."""
    return INT16.pack(version) + codec.encode(message, version)


def decode_version_prefixed(message: type[M], buffer: Buffer) -> M:
    """The message behind its version. MalformedError, or UnsupportedVersionError if it has no such version."""
    return codec.decode(message, read_prefix(buffer), buffer, INT16.size)


def read_prefix(buffer: Buffer) -> int:
    """The int16 that `buffer` begins with. MalformedError where it is too short for one."""
    if len(buffer) < INT16.size:
        raise codec.MalformedError(f"a version in {len(buffer)} bytes")
    prefix: int = INT16.unpack_from(buffer)[0]
    return prefix
