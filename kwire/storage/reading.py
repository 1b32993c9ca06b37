"""Reading a log: which bytes of which file answer a fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kwire.ports.executor import Executor
from kwire.ports.files import SMALL_SLICE_BYTES, FileSlice
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.cold_reads import ColdRead, Missing
from kwire.storage.damage import Damaged
from kwire.storage.segment import Segment
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.transaction_index import AbortedTransaction, overlapping

if TYPE_CHECKING:
    from kwire.storage.log import Log

_MAX_WARMING: Final = 8
"""Rounds of fetching what is cold before a read is done whatever it waits for: the page cache is losing the race."""


_new: Final = tuple.__new__
"""Makes a named tuple in one call of C."""


class LogRead(NamedTuple):
    """The answer to a read."""

    offset: int
    """The offset that was asked for."""
    segment_base: int
    """The base offset of the segment that the slice is of."""
    position: int
    """Where in that segment's file the first batch begins."""
    slice: FileSlice | None
    """From the first batch that ends at or after the offset; it may end amid a batch. None where nothing is there."""
    incomplete: bool = False
    """Whether max_bytes is too small for the first batch, of which the slice has a part only."""


def read(log: Log, offset: int, max_bytes: int, upto: int | None, min_one: bool, *, may_block: bool = True) -> LogRead:
    """See `Log.read`. Raises ColdRead where `may_block` is False and the disk would have to be waited for."""
    end_offset = log.log_end_offset
    if log.deleted or log.log_dir.offline_reason is not None:
        log.check_usable()
    if not log.log_start_offset <= offset <= end_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {offset} for partition {log.name}, but we only have log segments from offset "
            f"{log.log_start_offset} up to {end_offset}.",
        )
    bound = end_offset if upto is None or upto > end_offset else upto
    segments = log.segments
    segment = segments.active
    if offset >= segment.base_offset:
        if offset >= bound:
            return _new(LogRead, (offset, segment.base_offset, segment.size, None, False))
        found = segment.find(offset, may_block=may_block)
        segment_end = end_offset
    else:
        number = segments.floor_number(offset)
        if number < 0:
            if log.tiered:
                raise KafkaError(
                    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
                    f"Offset {offset} of {log.name} is in remote storage only, here are those from "
                    f"{log.local_start_offset} on",
                )
            number = 0
        segment = segments[number]
        if offset >= bound:
            return LogRead(offset, segment.base_offset, 0, None)
        found = segment.find(offset, may_block=may_block)
        while found is None and number + 1 < len(segments):
            number += 1
            segment = segments[number]
            found = segment.find(offset, may_block=may_block)
        segment_end = segments.end_of(number, end_offset)
    if found is None or segment.base_offset >= bound:
        return LogRead(offset, segment.base_offset, segment.size, None)
    position, batch_size = found
    end = segment.size
    if bound < segment_end:
        try:
            last = segment.find(bound, may_block=may_block)
        except Damaged as damaged:  # what is before it is readable
            end = damaged.position
        else:
            if last is not None:
                end = last[0]
    size = min(max(max_bytes, batch_size) if min_one else max_bytes, end - position)
    if size <= 0:
        return LogRead(offset, segment.base_offset, position, None)
    part = FileSlice(segment.file, position, size)
    return _new(LogRead, (offset, segment.base_offset, position, part, size < batch_size))


def at_once(log: Log, offset: int, max_bytes: int, upto: int | None, min_one: bool) -> LogRead | None:
    """See `Log.fetch_at_once`."""
    try:
        found = read(log, offset, max_bytes, upto, min_one, may_block=False)
    except ColdRead:
        return None
    return found if found.slice is None or _is_warm(log, found, found.slice) else None


async def fetch(log: Log, offset: int, max_bytes: int, upto: int | None, min_one: bool) -> LogRead:
    """See `Log.fetch`."""
    while True:
        missing = None
        try:
            found = read(log, offset, max_bytes, upto, min_one, may_block=False)
        except ColdRead as cold:
            missing = cold.missing
        if (
            missing is not None
        ):  # not in the `except`: the error would stay for as long as it waits, and with it the file
            found = await _read_warm(log, offset, max_bytes, upto, min_one, missing)
        version = log.segments.version
        part = found.slice
        if part is None:
            return found
        # Headers that were read to find it are islands in what is cold: asked about, they would speak for all of it.
        if missing is None and _is_warm(log, found, part):
            return found
        await _load(log, log.services.executor, part)
        # The segment may have been cleaned meanwhile: what is asked next of the log, such as which transactions were
        # aborted, would be answered of another file.
        if version == log.segments.version:
            return found


def _is_warm(log: Log, found: LogRead, part: FileSlice) -> bool:
    """Whether nothing of what was found has to be loaded; what comes next is read ahead. Not asked of the last little
    bit of the log: nothing comes next that could be loaded with it."""
    size, active = part.size, log.segments.active
    if size <= SMALL_SLICE_BYTES and found.segment_base == active.base_offset and part.position + size == active.size:
        return True
    return not part.file.is_loading_due(part.position, size)


async def _read_warm(
    log: Log, offset: int, max_bytes: int, upto: int | None, min_one: bool, missing: Missing
) -> LogRead:
    """As `read`; index entries and headers that are `missing` are read by a worker thread first."""
    executor = log.services.executor
    for _ in range(_MAX_WARMING):
        await _run(log, executor, missing)
        try:
            return read(log, offset, max_bytes, upto, min_one, may_block=False)
        except ColdRead as cold:
            if cold.missing.what == missing.what:  # this file system cannot tell what is in memory: it was just read
                break
            missing = cold.missing
    return read(log, offset, max_bytes, upto, min_one)


async def _run(log: Log, executor: Executor, missing: Missing) -> None:
    log_dir = log.log_dir
    try:
        await executor.run(missing.warm)
        missing.done()
    except OSError as error:
        if missing.stale:
            return
        raise log.failed("read", error, log_dir) from error
    except CorruptIndex as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{log.dir}: {error}") from error


async def _load(log: Log, executor: Executor, part: FileSlice) -> None:
    log_dir = log.log_dir
    try:
        await executor.run(part.file.load, part.position, part.size)
    except OSError as error:
        raise log.failed("read", error, log_dir) from error


def has_aborted(log: Log, found: LogRead) -> bool:
    """See `Log.has_aborted`."""
    segments = log.segments
    active = segments.active
    if found.segment_base == active.base_offset:  # as for most who read the newest
        return active.has_transactions
    return any(segment.has_transactions for segment in segments.from_base(found.segment_base))


def aborted(log: Log, offset: int, found: LogRead) -> list[AbortedTransaction]:
    """See `Log.aborted`."""
    part = found.slice
    if part is None or not has_aborted(log, found):
        return []
    segments = log.segments
    number = max(0, segments.floor_number(found.segment_base))
    upper = _offset_after(segments[number], part)
    if upper is None:
        upper = segments.end_of(number, log.log_end_offset)
    transactions: list[AbortedTransaction] = []
    for segment in segments.from_base(found.segment_base):
        if segment.has_transactions:
            more, complete = overlapping(segment.transactions(), offset, upper)
            transactions += more
            if complete:
                break
    return transactions


def _offset_after(segment: Segment, part: FileSlice) -> int | None:
    """An offset that the slice certainly does not reach; None where the segment's index knows none, or is not in memory
    any more."""
    end = part.position + part.size
    if end >= segment.size or segment.indexes is None:
        return None
    return segment.indexes.offsets.offset_at_or_after(end)
