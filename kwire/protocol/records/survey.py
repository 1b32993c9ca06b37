"""A quick look at all records of a batch whose producer may have got them wrong, for those that did not.

`record.scan` says where the parts of each record lie, and what is wrong with it. Most batches have nothing of which
that would have to be known, and to find so takes half the time: what is unusual is left to `scan`.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.record import skip_headers
from kwire.protocol.records.varint import read_varint, read_varlong


class Survey(NamedTuple):
    """Of records that fit their lengths and have the offsets 0, 1, 2, … from that of their batch."""

    first: int
    """The timestamp of the first record less the batch's base timestamp, in ms."""
    least: int
    """That of the earliest one."""
    most: int
    """That of the latest one."""
    keyless: bool
    """Whether one of them has no key."""


def survey(data: bytes, count: int) -> Survey | None:
    """Of `count` records in uncompressed record data.

    None where `scan` refuses them, where their offsets are others, and where one of them is larger than 8 KiB, or has
    as large a key: there are few of them in a batch then.
    """
    # Varints of one byte or two are read in place, again and again: a call takes as long as all else of a record.
    end = first = least = most = 0
    keyless = False
    try:
        for expected in range(0, count << 1, 2):  # zigzag: twice what it stands for, and odd where that is negative
            byte = data[end]
            if byte < 128:
                position = end + 1
            elif (second := data[end + 1]) < 128:
                byte += (second << 7) - 128
                position = end + 2
            else:
                return None
            if byte & 1:
                return None
            end = position + (byte >> 1)
            byte = data[position + 1]  # attributes, which are unused, are before it
            if byte < 128:
                delta = byte >> 1 ^ -(byte & 1)
                position += 2
            else:
                delta, position = read_varlong(data, position + 1)
            if delta > most:
                most = delta
            elif delta < least:
                least = delta
            byte = data[position]
            if byte < 128:
                position += 1
            elif (second := data[position + 1]) < 128:
                byte += (second << 7) - 128
                position += 2
            else:
                return None
            if byte != expected:
                return None
            if not expected:
                first = least = most = delta
            byte = data[position]
            if byte < 128:
                position += 1
            elif (second := data[position + 1]) < 128:
                byte += (second << 7) - 128
                position += 2
            else:
                return None
            if byte & 1:
                keyless = True
            else:
                position += byte >> 1
            byte = data[position]
            if byte < 128:
                position += 1
            elif (second := data[position + 1]) < 128:
                byte += (second << 7) - 128
                position += 2
            else:
                return None
            if not byte & 1:
                position += byte >> 1
            if data[position]:
                headers, position = read_varint(data, position)
                if not 0 < headers <= end - position:
                    return None
                position = skip_headers(data, position, headers)
            else:
                position += 1
            if position != end:
                return None
    except (IndexError, CorruptBatchError):
        return None
    if end != len(data) or count < 1:
        return None
    return Survey(first, least, most, keyless)
