"""What the generated code calls where a value is not of the common, short kind.

The fast path reads one byte and is done where it is below 128; everything here is for the rest. All functions take
the buffer and a position in it, and let IndexError out where the buffer ends: the generated code turns that into
MalformedError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.protocol.codec.errors import MalformedError
from kwire.protocol.codec.varints import read_long_varint, read_varint, varint

LONGEST_TEXT = 0x7FFF
"""Bytes a string may have, in compact form too."""

BYTE = tuple(bytes([value]) for value in range(128))
"""The varint of each number that takes one byte."""

_LARGE = 4096
"""From this size on, records stay a part of their own: joining would copy them."""


def read_text_length(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """`read_long_varint` for the length of a string, plus one. MalformedError if no string may be so long."""
    value, position = read_varint(buffer, position - 1)
    if value > LONGEST_TEXT + 1:
        raise MalformedError(f"a string of {value - 1} bytes")
    return value, position


def long_text(value: int) -> bytes:
    """`varint` for the length of a string, plus one. OverflowError if no string may be so long."""
    if value > LONGEST_TEXT + 1:
        raise OverflowError(f"a string of {value - 1} bytes, and {LONGEST_TEXT} are allowed")
    return varint(value)


def skip_tags(buffer: bytes | memoryview, position: int) -> int:
    """The position behind the tagged fields of a header, none of which is known."""
    return read_tags(buffer, position + 1, buffer[position])[1]


def read_tags(buffer: bytes | memoryview, position: int, count: int) -> tuple[dict[int, bytes] | None, int]:
    """The tagged fields of a struct that knows none, and the position behind them.

    `count` is the byte before `position`: the number of fields, or the first byte of it.
    """
    if count > 0x7F:
        count, position = read_long_varint(buffer, position)
    tags = {}
    for _ in range(count):
        tag, position, end = read_tag(buffer, position)
        tags[tag] = bytes(buffer[position:end])
        position = end
    return tags or None, position


def read_tag(buffer: bytes | memoryview, position: int) -> tuple[int, int, int]:
    """The number of a tagged field, and where its value begins and ends."""
    tag, position = read_varint(buffer, position)
    size, position = read_varint(buffer, position)
    end = position + size
    if end > len(buffer):
        raise MalformedError(f"tagged field {tag} of {size} bytes, {len(buffer) - position} left")
    return tag, position, end


def join_tags(known: Mapping[int, bytes], unknown: Mapping[int, bytes] | None) -> bytes:
    """The tagged fields of a struct, in order of their tags as Kafka writes them."""
    fields = {**unknown, **known} if unknown else known
    out = [varint(len(fields))]
    for tag in sorted(fields):
        out += (varint(tag), varint(len(fields[tag])), fields[tag])
    return b"".join(out)


def records_size(records: Any) -> int:
    """Bytes of a `records` field: of one piece, or of a list of pieces."""
    return sum(map(len, records)) if isinstance(records, list) else len(records)


def put_records(records: Any, pieces: list[bytes], parts: list[Any]) -> None:
    """Adds the pieces of a `records` field to the message being written.

    `pieces` are small and will be joined; `parts` are finished. Whatever is large, or not in memory, ends the pieces
    gathered so far and becomes a part.
    """
    for piece in records if isinstance(records, list) else (records,):
        if isinstance(piece, bytes | bytearray | memoryview) and len(piece) < _LARGE:
            pieces.append(piece)  # type: ignore[arg-type]
        elif len(piece):
            if pieces:
                parts.append(b"".join(pieces))
                pieces.clear()
            parts.append(piece)


def bad_length(what: str, length: int, left: int) -> MalformedError:
    """The error for a length or count that cannot be."""
    if length < 0:
        return MalformedError(f"{what} is null, and may not be")
    return MalformedError(f"{what}: {length} announced, {left} bytes left")


def unsupported(what: str, version: int) -> str:
    """The message of an UnsupportedFieldError."""
    return f"{what} has a value, and version {version} cannot carry it"


def bad_tag_size(tag: int, left: int) -> MalformedError:
    """The error for a tagged field whose value is shorter or longer than its size says."""
    return MalformedError(f"tagged field {tag} is {abs(left)} bytes {'too long' if left > 0 else 'too short'}")
