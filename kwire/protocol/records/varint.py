"""Zigzag varints as records use them (protocol buffers' sint32 and sint64)."""

from __future__ import annotations

from typing import Final

from kwire.protocol.codec.varints import varint
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.errors import CorruptBatchError


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """(an int32, the position after it). CorruptBatchError after five bytes without an end; IndexError at the end."""
    byte = data[position]
    position += 1
    value = byte & 0x7F
    shift = 7
    while byte > 127:
        if shift > 28:
            raise CorruptBatchError(ErrorCode.INVALID_RECORD, "Varint is too long, it has more than five bytes")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    value &= 0xFFFFFFFF  # the fifth byte may carry bits that an int32 does not have
    return value >> 1 ^ -(value & 1), position


def read_varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """(an int64, the position after it). CorruptBatchError after ten bytes without an end; IndexError at the end."""
    byte = data[position]
    position += 1
    value = byte & 0x7F
    shift = 7
    while byte > 127:
        if shift > 63:
            raise CorruptBatchError(ErrorCode.INVALID_RECORD, "Varlong is too long, it has more than ten bytes")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    value &= 0xFFFFFFFFFFFFFFFF
    return value >> 1 ^ -(value & 1), position


def encode_varint(value: int) -> bytes:
    """An int32 or int64 in as few bytes as it takes (the two differ only in how many may be read)."""
    value = value << 1 ^ value >> 63
    if value < 128:
        return _ONE_BYTE[value]
    return varint(value)


_ONE_BYTE: Final = [bytes((value,)) for value in range(128)]
