"""Messages to bytes and back."""

from __future__ import annotations

from typing import Any, TypeVar

from kwire.protocol.codec.errors import EncodeError, MalformedError, UnsupportedFieldError, UnsupportedVersionError
from kwire.protocol.schema import Message

M = TypeVar("M", bound=Message)

__all__ = [
    "EncodeError",
    "MalformedError",
    "UnsupportedFieldError",
    "UnsupportedVersionError",
    "decode",
    "encode",
    "encode_parts",
]


def decode(message: type[M], version: int, data: bytes | memoryview) -> M:
    """The message in `data`, all of it. MalformedError if it is not one."""
    from kwire.protocol.codec import reference

    return reference.decode(message, version, data)


def encode(message: Message, version: int) -> bytes:
    """The bytes of `message`. EncodeError if a value cannot be written."""
    from kwire.protocol.codec import reference

    return reference.encode(message, version)


def encode_parts(message: Message, version: int) -> list[Any]:
    """The bytes of `message` in parts."""
    return [encode(message, version)]
