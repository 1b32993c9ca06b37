"""Unsigned varints, as lengths and counts of the wire are in what is compact.

All functions that read take the buffer and a position in it, and let IndexError out where the buffer ends.
"""

from __future__ import annotations

from kwire.protocol.codec.errors import MalformedError


def read_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits, and the position behind it."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise MalformedError("a varint of more than five bytes")
    if value > 0xFFFFFFFF:
        raise MalformedError(f"a varint of more than 32 bits: {value}")
    return value, position


def read_long_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """The same, for a caller that has read the first byte, found it to be 128 or more, and stands behind it."""
    second = buffer[position]
    if second < 0x80:
        return buffer[position - 1] & 0x7F | second << 7, position + 1
    third = buffer[position + 1]
    if third < 0x80:  # lengths from 16 KiB to 2 MiB, as batches have
        return buffer[position - 1] & 0x7F | (second & 0x7F) << 7 | third << 14, position + 2
    return read_varint(buffer, position - 1)


def varint(value: int) -> bytes:
    """The unsigned varint of a number of at least 0."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
