"""Messages to bytes and back.

    request = codec.decode(FetchRequest, 18, frame, body_offset)
    parts = codec.encode_parts(response, 18)

Each message and version is decoded and encoded by straight-line code made for just that. `construct_of` turns the
declaration into a construct Struct, `decoder` and `encoder` walk that and write the code, and `functions` finds it:
written when the package was built, or else when first used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from kwire.ports.files import FileSlice
from kwire.protocol.codec.errors import EncodeError, MalformedError, UnsupportedFieldError, UnsupportedVersionError
from kwire.protocol.codec.functions import find
from kwire.protocol.schema import Message

if TYPE_CHECKING:
    from kwire.ports.files import Buffer
    from kwire.ports.transport import Part

__all__ = [
    "EncodeError",
    "MalformedError",
    "UnsupportedFieldError",
    "UnsupportedVersionError",
    "decode",
    "decode_prefix",
    "encode",
    "encode_parts",
]

M = TypeVar("M", bound=Message)

_decoders: dict[tuple[type[Message], int], Callable[[bytes | memoryview, int], tuple[Any, int]]] = {}
_encoders: dict[tuple[type[Message], int], Callable[[Message, list[Any]], bytes]] = {}


def decode(message: type[M], version: int, buffer: bytes | memoryview, start: int = 0) -> M:
    """The message that begins at `start` of `buffer`. Bytes behind it are ignored, as Kafka does.

    Fields of type `bytes` and `records` are memoryviews onto the buffer. MalformedError if the bytes are not such a
    message, UnsupportedVersionError if there is no such version.
    """
    decoded: M = (_decoders.get((message, version)) or _find_decoder(message, version))(buffer, start)[0]
    return decoded


def decode_prefix(message: type[M], version: int, buffer: bytes | memoryview, start: int = 0) -> tuple[M, int]:
    """`decode`, and the position behind the message: the end of the buffer, unless something is left over."""
    decoder = _decoders.get((message, version)) or _find_decoder(message, version)
    decoded: tuple[M, int] = decoder(buffer, start)
    return decoded


def _find_decoder(message: type[Message], version: int) -> Callable[[bytes | memoryview, int], tuple[Any, int]]:
    decoder = _decoders[message, version] = find(message, version, "decode")
    return decoder


def encode(message: Message, version: int) -> bytes:
    """The message as bytes; slices of files are read. Raises as `encode_parts`; EncodeError for what is streamed."""
    parts = encode_parts(message, version)
    if len(parts) == 1 and isinstance(parts[0], bytes):
        return parts[0]
    return b"".join(map(_bytes_of, parts))


def _bytes_of(part: Part) -> Buffer:
    if isinstance(part, bytes | bytearray | memoryview):
        return part
    if isinstance(part, FileSlice):
        return part.read()
    raise EncodeError("a part of the message comes only while it is sent")


def encode_parts(message: Message, version: int) -> list[Part]:
    """The message as parts to be sent one after the other: large records and what is not in memory are their own.

    UnsupportedFieldError if a field holds a value that the version cannot carry and must not drop, EncodeError if a
    value does not fit its type, UnsupportedVersionError if there is no such version. Only the length of a uuid, which
    must be 16 bytes, is not looked at.
    """
    cls = message.__class__
    encoder = _encoders.get((cls, version))
    if encoder is None:
        encoder = _encoders[cls, version] = find(cls, version, "encode")
    parts: list[Part] = []
    rest = encoder(message, parts)
    if rest or not parts:
        parts.append(rest)
    return parts
