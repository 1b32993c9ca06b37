"""Going quickly through the records of a batch whose bytes are known to be right: keys and extents, nothing else.

Values and headers are stepped over by the records' own lengths; what they hold is not looked at. `record.scan` looks
at everything, at half the speed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.varint import read_varint, read_varlong

Skimmed = tuple[int, int, int, int, bytes | None, bool]
"""A record's start, end, timestamp delta, offset delta, key, and whether its value is null."""


def skim(data: bytes, count: int) -> Iterator[Skimmed]:
    """The parts of `count` records in uncompressed record data.

    CorruptBatchError (INVALID_RECORD) where lengths do not fit, or something is left after the last.
    """
    end = 0
    try:
        for _ in range(count):
            start = end
            # Nearly all varints have one byte or two: those are read in place, the others by a call.
            byte = data[start]
            if byte < 128:
                length, position = byte, start + 1
            elif (second := data[start + 1]) < 128:
                length, position = byte - 128 + (second << 7), start + 2
            else:
                length, position = read_varint(data, start)
                length <<= 1
            if length & 1 or length < 0:  # zigzag: what is odd is negative
                raise _invalid()
            end = position + (length >> 1)
            position += 1  # attributes: unused
            byte = data[position]
            if byte < 128:
                timestamp_delta = byte >> 1 ^ -(byte & 1)
                position += 1
            else:
                timestamp_delta, position = read_varlong(data, position)
            byte = data[position]
            if byte < 128:
                offset_delta = byte >> 1 ^ -(byte & 1)
                position += 1
            elif (second := data[position + 1]) < 128:
                byte += (second << 7) - 128
                offset_delta = byte >> 1 ^ -(byte & 1)
                position += 2
            else:
                offset_delta, position = read_varint(data, position)
            byte = data[position]
            if byte < 128:
                position += 1
                key_length = byte
            else:
                key_length, position = read_varint(data, position)
                key_length = key_length << 1 if key_length >= 0 else 1
            if key_length & 1:
                key = None
            else:
                key_at = position
                position += key_length >> 1
                key = data[key_at:position]
            null = data[position] & 1 == 1
            if position >= end:
                raise _invalid()
            yield start, end, timestamp_delta, offset_delta, key, null
    except IndexError:
        raise _invalid() from None
    if end != len(data):
        raise _invalid()


def extents(data: bytes, count: int) -> Iterator[tuple[int, int, int]]:
    """Where each of `count` records begins, where its length ends, and where it ends. Raises as `skim` does."""
    end = 0
    try:
        for _ in range(count):
            start = end
            byte = data[start]
            if byte < 128:
                length, body = byte, start + 1
            elif (second := data[start + 1]) < 128:
                length, body = byte - 128 + (second << 7), start + 2
            else:
                length, body = read_varint(data, start)
                length <<= 1
            end = body + (length >> 1)
            if length & 1 or end <= body:
                raise _invalid()
            yield start, body, end
    except IndexError:
        raise _invalid() from None
    if end != len(data):
        raise _invalid()


def timestamp_delta_at(data: bytes, body: int) -> int:
    """Of the record whose length ends at `body`."""
    byte = data[body + 1]
    return byte >> 1 ^ -(byte & 1) if byte < 128 else read_varlong(data, body + 1)[0]


def _invalid() -> CorruptBatchError:
    return CorruptBatchError(ErrorCode.INVALID_RECORD, "The records do not fit their batch")
