"""The records that every client writes and reads back."""

from __future__ import annotations

import base64
import random

from compat_tests.driver import Header, Record

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_TIME = 1_700_000_000_000
"""The first timestamp of the matrix, in ms; the records follow a second apart."""

MIB = 1024 * 1024
LARGEST_BY_DEFAULT = 1_048_000
"""Bytes of a value whose batch just fits into the default `max.message.bytes` of 1,048,588."""
HUGE = 20 * MIB
HUGE_LIMIT = HUGE + MIB

HEADERS: tuple[Header, ...] = (
    ("a", b"1"),
    ("a", b"2"),
    ("empty", b""),
    ("bytes", bytes([0, 255])),
    ("ключ", b"unicode"),
)


def noise(size: int, seed: int = 0) -> bytes:
    """Text that no codec makes much smaller."""
    return base64.b64encode(random.Random(seed).randbytes(size))[:size]


def spaced(records: list[Record]) -> tuple[Record, ...]:
    """The same records with timestamps a second apart."""
    return tuple(
        Record(record.key, record.value, record.headers, BASE_TIME + 1000 * index)
        for index, record in enumerate(records)
    )


MATRIX = spaced(
    [
        Record(b"key", b"value"),
        Record(None, b"no key"),
        Record(b"no value", None),
        Record(b"", b""),
        Record("schlüssel".encode(), "wert ✓".encode()),
        Record(bytes(range(256)), bytes(range(256))),
        Record(b"headers", b"value", HEADERS),
        Record(b"text", b"all work and no play " * 500),
        Record(b"noise", noise(4096)),
    ]
)
"""Every kind of record that all clients can write."""

WITH_NULL_HEADER = spaced([*MATRIX, Record(b"null header", b"value", (("null", None),))])
WITH_NOTHING = spaced([*WITH_NULL_HEADER, Record(None, None)])
"""The same for the clients that can write a header without a value, and a record with neither key nor value."""

TEXT = spaced(
    [
        Record(b"key", b"value"),
        Record(None, b"no key"),
        Record(b"no value", None),
        Record("schlüssel".encode(), "wert ✓".encode()),
        Record(b"headers", b"value", (("a", b"1"), ("a", b"2"))),
        Record(b"text", b"all work and no play " * 500),
    ]
)
"""The part of it that a command line can say."""

UNTIMED_TEXT = tuple(Record(record.key, record.value, record.headers) for record in TEXT)


def numbered(count: int, size: int = 0) -> list[Record]:
    """Records that carry their place in the order, a millisecond apart, padded to at least `size` bytes."""
    return [Record(b"%d" % i, (b"%d " % i).ljust(size, b"."), timestamp=BASE_TIME + i) for i in range(count)]
