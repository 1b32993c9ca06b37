"""Where a log goes on behind a batch that is damaged: a flipped bit shall cost the batch it is in, and nothing else.

    | batch | batch | dam?ged | batch | batch |
                              ^ the next batch, if it is one of this log for certain

A batch whose length can still be trusted is stepped over: the next one begins where it ends. Otherwise the next one is
searched for, byte by byte. What looks like a batch might be one that a producer has put into a record's value, so that
it counts only as the first of a chain of whole batches, offsets ascending, that comes out exactly at a place where a
batch is known to end: the segment's end, the beginning of a reserve, or one that the index names. A value never
reaches to the end of its batch.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

from kwire.ports.files import File
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import HEADER_SIZE, MAGIC, BatchHeader, read_header
from kwire.storage import reserve
from kwire.storage.batch_walk import SCAN_WINDOW, SEARCH_WINDOW, headers, plausible, verified

logger = logging.getLogger(__name__)

_MAGIC_AT = 16
_SEARCH_BYTES = 64 * 1024 * 1024
"""So far a search goes at the most, which is many of the largest batches that the default limits let through."""


def next_batch(
    file: File, position: int, end: int, next_offset: int, boundaries: Collection[int] = (), *, told: bool = False
) -> int | None:
    """Where the first batch begins that lies behind the damaged one at `position`; None where there is none.

    `end` is the end of the segment's bytes, `next_offset` the least offset that can come, and at `boundaries` batches
    are known to begin. One line of the log tells of the damage, unless it was `told` before. Raises OSError.
    """
    behind = _stepped_over(file, position, end, next_offset)
    if behind is None:
        behind = _search(file, position, end, next_offset, {place for place in boundaries if place > position} | {end})
    if told:
        return behind
    if behind is None:
        logger.error("%s is damaged from byte %d on, where offset %d is due", file.path, position, next_offset)
    else:
        offset = read_header(file.pread(HEADER_SIZE, behind)).base_offset
        logger.error(
            "%s is damaged at byte %d, where offset %d is due: it goes on at byte %d with offset %d",
            file.path,
            position,
            next_offset,
            behind,
            offset,
        )
    return behind


def misplaced(file: File, position: int, header: BatchHeader, end: int, next_offset: int) -> bool:
    """Whether a batch that is not of the offset which is due cannot be where it is.

    Offsets ascend. After a gap, which compaction leaves, they must still do so: the checksum does not cover them.
    """
    if header.base_offset < next_offset:
        return True
    after = position + header.size
    data = file.pread(HEADER_SIZE, after) if end - after >= HEADER_SIZE else b""
    if len(data) < HEADER_SIZE:
        return False
    following = read_header(data)
    return plausible(following, end - after) and following.base_offset < header.next_offset


def _search(file: File, position: int, end: int, next_offset: int, known: Collection[int]) -> int | None:
    magic = bytes([MAGIC])
    searched = position + 1
    while searched + HEADER_SIZE <= min(end, position + _SEARCH_BYTES):
        window = file.pread(min(SCAN_WINDOW, end - searched), searched)
        found = window.find(magic, _MAGIC_AT)
        while found >= 0:
            candidate = searched + found - _MAGIC_AT
            if end - candidate >= HEADER_SIZE and _is_chain(file, candidate, end, next_offset, known):
                return candidate
            found = window.find(magic, found + 1)
        searched += max(1, len(window) - _MAGIC_AT)
    return None


def _stepped_over(file: File, position: int, end: int, next_offset: int) -> int | None:
    """The batch behind one whose header is plausible, if it is whole."""
    data = file.pread(HEADER_SIZE, position)
    if len(data) < HEADER_SIZE:
        return None
    header = read_header(data)
    if not plausible(header, end - position):
        return None
    after = position + header.size
    for _, following, _ in verified(file, after, end):
        return after if following.base_offset >= next_offset else None
    return None


def _is_chain(file: File, position: int, end: int, next_offset: int, known: Collection[int]) -> bool:
    data = file.pread(HEADER_SIZE, position)
    if not plausible(read_header(data), end - position):
        return False
    for place, header, _ in verified(file, position, end):
        if header.base_offset < next_offset:
            return False
        next_offset = header.next_offset
        after = place + header.size
        if after in known or reserve.follows(file, after, end):
            return True
    return False


class Damaged(CorruptBatchError):
    """There is no batch where one is due."""

    def __init__(self, path: str, position: int) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{path} has no batch at byte {position}")
        self.position = position


class Found(NamedTuple):
    """A batch, as far as its header says."""

    position: int
    header: BatchHeader
    damaged: int | None
    """Where the damage begins that lies right before it, if there is any."""


def batches(
    file: File,
    start: int,
    end: int,
    next_offset: int,
    boundaries: Collection[int] = (),
    *,
    window: int = SEARCH_WINDOW,
    may_block: bool = True,
    told: Collection[int] = (),
) -> Iterator[Found]:
    """As `headers`, but around damage. Where the start of the file, or a place amid it, is no batch, the next one
    follows; where `start` is amid it and no batch, nothing.

    `next_offset` is the offset at the file's beginning; `told` are positions of damage that the log was told of. Raises
    Damaged at the end where the last bytes are no batch, ColdRead as `headers` does, OSError.
    """
    position = start
    damaged = None
    while position < end:
        previous, before = None, next_offset
        for at, header in headers(file, position, end, window, may_block=may_block):
            due = next_offset if at != start or not start else header.base_offset
            if header.base_offset != due and misplaced(file, at, header, end, due):
                break
            yield Found(at, header, damaged)
            previous, before = at, due
            position, next_offset, damaged = at + header.size, header.next_offset, None
        if position >= end or (position == start != 0):
            return
        if previous is not None and not _whole(file, previous, end):  # its length is what is wrong
            position, next_offset = previous, before
        damaged = position
        behind = next_batch(file, damaged, end, next_offset, boundaries, told=damaged in told)
        if behind is None:
            raise Damaged(file.path, damaged)
        position = behind


def spans(file: File, damaged: int, behind: int, offset: int) -> bool:
    """Whether what is damaged says of itself that it goes from there up to `behind`, and may hold the offset.

    Then, as with Apache Kafka, it is the client's to find what is wrong with it: librdkafka goes on behind it.
    """
    data = file.pread(HEADER_SIZE, damaged)
    if len(data) < HEADER_SIZE:
        return False
    header = read_header(data)
    return damaged + header.size == behind and header.base_offset <= offset


def _whole(file: File, position: int, end: int) -> bool:
    return next(verified(file, position, end), None) is not None


def readable(
    file: File, start: int, end: int, next_offset: int, boundaries: Collection[int] = ()
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of all `batches`, up to the last that can be found."""
    with suppress(Damaged):
        for found in batches(file, start, end, next_offset, boundaries, window=SCAN_WINDOW):
            yield found.position, found.header
