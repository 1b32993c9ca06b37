"""One cleaning of one log.

The work is done in worker threads a piece at a time: the interpreter lets one thread run at once, so that a piece is as
long as the event loop may have to wait. Between pieces it is looked whether the log is still what it was. The swap of a
group of segments is done on the event loop: nobody sees half of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import trio

from kwire.protocol.records.compression import DEFAULT_LIMIT
from kwire.protocol.records.errors import CorruptBatchError
from kwire.storage import layout, truncating
from kwire.storage.cleaning.batch_filter import BatchFilter, LastBatch
from kwire.storage.cleaning.cleanable import Cleanable
from kwire.storage.cleaning.cleaned import CleanedFiles
from kwire.storage.cleaning.grouping import group
from kwire.storage.cleaning.mapping import map_offsets
from kwire.storage.cleaning.offset_map import OffsetMap
from kwire.storage.cleaning.rewriting import rewrite
from kwire.storage.cleaning.source import Source
from kwire.storage.cleaning.transactions import CleanedTransactions
from kwire.storage.log import Log
from kwire.storage.segment import Segment
from kwire.storage.transaction_index import AbortedTransaction, overlapping

_RECORDS_PER_PIECE = 150
"""About a millisecond of the interpreter's time."""

_BATCHES_PER_PIECE = 50
_BYTES_PER_PIECE = 1024 * 1024


class Uncleanable(Exception):
    """The log cannot be cleaned as it is; the message says why."""


class CleaningAborted(Exception):
    """The log was truncated or deleted, is not to be compacted any more, or its dir failed: what was begun is void."""


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """What one cleaner may use."""

    map_bytes: int
    load_factor: float
    buffer_bytes: int
    """To read at once, and likewise to write."""


Throttle = Callable[[int], Awaitable[None]]
"""To be called with bytes that were read or written; waits as long as they are too many."""


@dataclass(slots=True)
class Cleaned:
    """What a cleaning did."""

    end_offset: int
    """Up to here (exclusive) the log is clean."""
    bytes_before: int = 0
    bytes_after: int = 0


class Cleaning:
    """For the event loop's thread; `run` once."""

    def __init__(self, cleanable: Cleanable, settings: CleanerSettings, throttle: Throttle) -> None:
        self._cleanable = cleanable
        self._log: Log = cleanable.log
        self._settings = settings
        self._throttle = throttle
        self._version = cleanable.version
        self._reading: Sequence[Source] = ()
        self._seen_version = -1
        self._limit = max(DEFAULT_LIMIT, 4 * self._log.config.max_message_bytes)

    async def run(self) -> Cleaned:
        """Raises Uncleanable; CleaningAborted where the log changed; KAFKA_STORAGE_ERROR."""
        log = self._log
        try:
            offsets = await self._map()
            cleaned = Cleaned(offsets.latest_offset + 1)
            transactions = CleanedTransactions()
            sources = [source for source in self._sources() if source.segment.base_offset < cleaned.end_offset]
            now_ms = log.services.clock.wall_ms()
            self._begin(sources)
            for together in await log.services.executor.run(group, log.services.files, sources, log.config):
                await self._rewrite(together, offsets, transactions, now_ms, cleaned)
            return cleaned
        except OSError as error:
            self._check()
            raise log.failed("cleaning", error) from error
        except CorruptBatchError as error:
            self._check()
            raise Uncleanable(error.message) from error

    def _sources(self) -> list[Source]:
        """The segments that may be cleaned."""
        segments, end = self._log.segments, self._cleanable.end_offset
        return [
            Source(segment, segments.end_of(number, end))
            for number, segment in enumerate(segments)
            if segment.base_offset < end
        ]

    def _check(self) -> None:
        """Raises CleaningAborted where the log is not to be cleaned as it was when looked at, or a source is gone."""
        log = self._log
        if log.deleted or not log.log_dir.online or log.version != self._version or not log.config.compacted:
            raise CleaningAborted
        if log.segments.version != self._seen_version:
            present = set(map(id, log.segments))
            if any(id(source.segment) not in present for source in self._reading):
                raise CleaningAborted
            self._seen_version = log.segments.version

    def _begin(self, sources: Sequence[Source]) -> None:
        """From now on these are read."""
        self._reading = sources
        self._seen_version = -1
        self._check()

    # In pieces

    async def _do(self, steps: Iterator[tuple[int, int]]) -> None:
        """Runs a generator of (records, bytes) to its end."""
        executor = self._log.services.executor
        more = True
        while more:
            more, size = await executor.run(_piece, steps)
            await self._throttle(size)
            self._check()

    async def _map(self) -> OffsetMap:
        log, start, settings = self._log, self._cleanable.first_dirty_offset, self._settings
        sources = [source for source in self._sources() if source.end_offset > start]
        self._begin(sources)
        keys = max(1, self._cleanable.end_offset - start)
        secret = log.services.randomness.uuid()
        offsets = OffsetMap(settings.map_bytes, keys, settings.load_factor, secret, start)
        transactions = CleanedTransactions()
        transactions.add(await self._aborted(sources))
        await self._do(
            map_offsets(log.services.files, sources, start, offsets, transactions, settings.buffer_bytes, self._limit)
        )
        if sources and offsets.latest_offset < start:
            raise Uncleanable(
                f"the first batch from offset {start} on has more keys than log.cleaner.dedupe.buffer.size has room for"
            )
        return offsets

    async def _aborted(self, sources: Sequence[Source]) -> list[AbortedTransaction]:
        """The aborted transactions that records in the sources may belong to."""
        if not sources:
            return []
        start, end = sources[0].segment.base_offset, sources[-1].end_offset
        marked = [segment for segment in self._log.segments.from_base(start) if segment.has_transactions]
        return await self._log.services.executor.run(_load_aborted, marked, start, end) if marked else []

    async def _rewrite(
        self,
        sources: Sequence[Source],
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        now_ms: int,
        result: Cleaned,
    ) -> None:
        log, settings = self._log, self._settings
        files, executor = log.services.files, log.services.executor
        self._begin(sources)
        transactions.add(await self._aborted(sources))
        producers = {
            entry.producer_id: LastBatch(entry.last_offset, entry.epoch)
            for entry in log.producer_state.entries.values()
        }
        batches = BatchFilter(
            offsets,
            transactions,
            producers,
            self._cleanable.end_offset,
            now_ms,
            log.config.delete_retention_ms,
            self._limit,
        )
        base_offset = sources[0].segment.base_offset
        cleaned = await executor.run(
            CleanedFiles, files, log.dir, base_offset, log.config.index_interval_bytes, settings.buffer_bytes
        )
        try:
            await self._do(rewrite(files, sources, batches, transactions, cleaned, settings.buffer_bytes))
        except BaseException:
            with trio.CancelScope(shield=True):
                await executor.run(cleaned.discard)
            raise
        before = [source.segment for source in sources]
        swap_in(log, cleaned, before)
        self._begin(())
        result.bytes_before += sum(segment.size for segment in before)
        result.bytes_after += cleaned.size
        await executor.run(files.sync_dir, log.dir)


def _piece(steps: Iterator[tuple[int, int]]) -> tuple[bool, int]:
    """Whether there is more to do, and the bytes gone through."""
    records = size = 0
    for batches, (more_records, more_bytes) in enumerate(steps, 1):
        records += more_records
        size += more_bytes
        if records >= _RECORDS_PER_PIECE or batches >= _BATCHES_PER_PIECE or size >= _BYTES_PER_PIECE:
            return True, size
    return False, size


def _load_aborted(segments: Sequence[Segment], start: int, end: int) -> list[AbortedTransaction]:
    found: list[AbortedTransaction] = []
    for segment in segments:
        more, complete = overlapping(segment.load_transactions(), start, end)
        found += more
        if complete:
            break
    return found


def swap_in(log: Log, cleaned: CleanedFiles, sources: Sequence[Segment]) -> None:
    """Puts the segment in the place of those it was made of. Raises KAFKA_STORAGE_ERROR.

    Who still sends from an old one keeps its file; a crash amid this is completed at the next start.
    """
    services = log.services
    first = sources[0]
    try:
        modified_ms = sources[-1].modified_ms()
        cleaned.rename(layout.CLEANED, layout.SWAP)
        truncating.remove_files(log, sources, snapshot_stays=first.base_offset)
        cleaned.rename(layout.SWAP, "")
        segment = Segment(
            services.files,
            services.open_files,
            log.dir,
            cleaned.base_offset,
            size=cleaned.size,
            created_ms=first.created_ms,
            index_interval=log.config.index_interval_bytes,
            has_transactions=bool(cleaned.transactions),
        )
        services.files.set_modified_ms(segment.path(layout.LOG), modified_ms)
    except OSError as error:
        raise log.failed("cleaning", error) from error
    segment.newest = cleaned.indexes.newest
    log.segments.replace(sources, [segment])
    log.names_version += 1
