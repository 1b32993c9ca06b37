"""Padding ahead of an active segment's end, so that the page cache holds what is appended in large folios.

The system keeps what is written in folios as large as the write that made them, at places that are multiples of their
size: a batch of 16 KiB, which begins anywhere, lies in folios of one and two pages, and whoever sends it looks up each.
Padding makes folios of 32 KiB, which the batches then fill. The segment's file is longer than the segment meanwhile,
until it is sealed or nothing was appended for a while (`upkeep`); after a kill the next start cuts it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from kwire.ports.files import Buffer, File

PIECE: Final = 32 * 1024
"""Bytes of a folio: the most that Linux has at hand for each CPU (PAGE_ALLOC_COSTLY_ORDER), and in memory that is in
pieces. With larger ones writing took up to 1.8 times the CPU there (ARCHITECTURE.md, Decisions)."""

STEP: Final = 256 * 1024
"""The reserve ends at a multiple of so many bytes."""

LEFT: Final = 64 * 1024
"""So little of the reserve is left when more of it is made, so that also a large batch finds its place in it."""

MOST: Final = STEP + LEFT
"""So much may be made at once."""

FIRST_AT: Final = 512 * 1024
"""So much is appended to a segment before it has one: it would be longer by more than half, and soon be cut again."""

FLUSHED_OFTEN: Final = 10_000
"""A log whose flush.messages is less has none: with each flush the system would write the padding to the disk first."""

NEVER: Final = 1 << 62
"""At this size it is due where there is to be none: what was preallocated stays as it is."""

PADDING: Final = b"\x7f"
"""Of this is a reserve. Apache Kafka's tools read it as a batch of 2 GiB that is not all there yet, and stop at it; at
zeros, as `preallocate` makes them, DumpLogSegments fails."""

_LONGEST: Final = MOST + LEFT
_PADDING: Final = memoryview(PADDING * PIECE)


def make(file: File, end: int, made: int, limit: int) -> int:
    """Makes a reserve behind `end`, where the segment ends, or more of it; returns where it ends now.

    `made`: where it ended before, 0 where there was none. `limit`: the segment's greatest size, which the file keeps as
    well. Where the disk has no room for it there is less, or none: what is appended fits, or says itself that it does
    not.
    """
    start = max(end, made)
    upto, at = min(((start + LEFT) // STEP + 1) * STEP, limit), start
    with suppress(OSError):
        while at < upto:
            size = min(PIECE - at % PIECE, upto - at)
            file.pwrite([_PADDING[:size]], at)
            at += size
    return at


def follows(file: File, start: int, end: int) -> bool:
    """Whether a reserve lies in [start, end), and no zeros, which may be the end of a batch, or what a
    power cut left. Raises OSError."""
    return 0 < end - start <= _LONGEST and not file.pread(end - start, start).strip(PADDING)


def is_padding(data: Buffer) -> bool:
    """Whether these bytes are nothing but the file's room for more: a reserve, or the zeros of `preallocate`.

    Both may stand there at once: of a reserve that did not reach the disk before the power went zeros are left.
    """
    return not bytes(data).strip(b"\0" + PADDING)
