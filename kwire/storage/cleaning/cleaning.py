"""One cleaning of one log: a worker does the work, and between its pieces it is looked whether the log still is what it
was. The swap of a group of segments is done on the event loop: nobody sees half of it.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import trio

from kwire.ports.workers import Worker
from kwire.protocol.records.compression import DEFAULT_LIMIT
from kwire.protocol.records.errors import CorruptBatchError
from kwire.storage import layout, truncating
from kwire.storage.cleaning import cleaned as cleaned_files
from kwire.storage.cleaning.batch_filter import LastBatch
from kwire.storage.cleaning.cleanable import Cleanable
from kwire.storage.cleaning.cleaned import CleanedSegment
from kwire.storage.cleaning.grouping import group, most_bytes
from kwire.storage.cleaning.shortages import TooLittleRoom
from kwire.storage.cleaning.source import Source
from kwire.storage.cleaning.work import CleanerSettings, CleaningWork, ToRead
from kwire.storage.log import Log
from kwire.storage.producer_entry import NO_OFFSET
from kwire.storage.room import Reservation
from kwire.storage.segment import Segment
from kwire.storage.sparse_index import CorruptIndex

_PRODUCERS_PER_TURN = 500
"""Producers looked at before other tasks get their turn."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Uncleanable(Exception):
    """The log cannot be cleaned as it is; the message says why."""


class CleaningAborted(Exception):
    """The log was truncated or deleted, is not to be compacted any more, or its dir failed: what was begun is void."""


Throttle = Callable[[int], Awaitable[None]]
"""To be called with bytes that were read or written; waits as long as they are too many."""


@dataclass(slots=True)
class Cleaned:
    """What a cleaning did."""

    end_offset: int
    """Up to here (exclusive) the log is clean."""
    bytes_before: int = 0
    bytes_after: int = 0
    lack: TooLittleRoom | None = None
    """Why it went no further, where the volume is the reason."""


class Cleaning:
    """For the event loop's thread; `run` once."""

    def __init__(
        self, cleanable: Cleanable, settings: CleanerSettings, throttle: Throttle, worker: Worker[CleaningWork]
    ) -> None:
        self._cleanable = cleanable
        self._log: Log = cleanable.log
        self._settings = settings
        self._throttle = throttle
        self._worker = worker
        self._version = cleanable.version
        self._segments: dict[int, Segment] = {}
        """Those that may be cleaned, by base offset."""
        self._reading: Sequence[Source] = ()
        self._seen_version = -1
        self._limit = max(DEFAULT_LIMIT, 4 * self._log.config.max_message_bytes)

    async def run(self) -> Cleaned:
        """Raises Uncleanable; CleaningAborted where the log changed; KAFKA_STORAGE_ERROR; WorkerDied."""
        log = self._log
        sources = self._sources()
        cleaned = Cleaned(self._cleanable.first_dirty_offset)
        try:
            try:
                for first in sources[:1]:  # all is read in vain where not even that fits
                    with await self._reserve([first]) or nullcontext():
                        pass
                end_offset = await self._map(sources) + 1
                sources = [source for source in sources if source.base_offset < end_offset]
                now_ms = log.services.clock.wall_ms()
                self._begin(sources)
                for together in await log.services.executor.run(group, log.services.files, sources, log.config):
                    await self._rewrite_as_fits(together, now_ms, cleaned)
                cleaned.end_offset = end_offset
            except TooLittleRoom as lack:
                # What comes behind it stays as well: a tombstone goes only when what it deletes has gone before.
                cleaned.lack = lack
                cleaned.end_offset = max(lack.segment.base_offset, cleaned.end_offset)
            await self._worker.call(CleaningWork.forget)
            return cleaned
        except OSError as error:
            self._check()
            raise log.failed("cleaning", error) from error
        except (CorruptBatchError, CorruptIndex) as error:
            self._check()
            raise Uncleanable(error.message if isinstance(error, CorruptBatchError) else str(error)) from error

    def _sources(self) -> list[Source]:
        segments, end = self._log.segments, self._cleanable.end_offset
        sources = []
        for number, segment in enumerate(segments):
            if segment.base_offset < end:
                self._segments[segment.base_offset] = segment
                sources.append(Source(segment.dir, segment.base_offset, segment.size, segments.end_of(number, end)))
        return sources

    def _check(self) -> None:
        """Raises CleaningAborted where the log is not to be cleaned as it was when looked at, or a source is gone."""
        log = self._log
        if log.deleted or not log.log_dir.online or log.version != self._version or not log.config.compacted:
            raise CleaningAborted
        if log.segments.version != self._seen_version:
            present = set(map(id, log.segments))
            if any(id(self._segments[source.base_offset]) not in present for source in self._reading):
                raise CleaningAborted
            self._seen_version = log.segments.version

    def _begin(self, sources: Sequence[Source]) -> None:
        """From now on these are read."""
        self._reading = sources
        self._seen_version = -1
        self._check()

    def _to_read(self, sources: Sequence[Source]) -> ToRead:
        self._begin(sources)
        later = self._log.segments.from_base(sources[0].base_offset) if sources else ()
        indexes = [
            (segment.path(layout.TRANSACTION_INDEX), segment.base_offset)
            for segment in later
            if segment.has_transactions
        ]
        return ToRead(sources, indexes, self._limit)

    async def _work(self, reservation: Reservation | None = None) -> None:
        """Has the worker do what was begun. OSError where it wrote more than was reserved, and there is no room."""
        more = True
        while more:
            more, size, written = await self._worker.call(CleaningWork.piece)
            if reservation is not None and not reservation.wrote(written):
                raise OSError(errno.ENOSPC, "what is left of the segments is larger than they were")
            await self._throttle(size)
            self._check()

    async def _map(self, sources: Sequence[Source]) -> int:
        """The offset (inclusive) up to which all keys are known."""
        start, worker = self._cleanable.first_dirty_offset, self._worker
        self._check()
        dirty = [source for source in sources if source.end_offset > start]
        await worker.call(
            CleaningWork.begin_mapping,
            self._to_read(dirty),
            start,
            max(1, self._cleanable.end_offset - start),
            self._log.services.randomness.uuid(),
            self._settings,
        )
        await self._work()
        return await worker.call(CleaningWork.mapped)

    async def _reserve(self, sources: Sequence[Source]) -> Reservation | None:
        """Room for what the sources become; None where nobody looks after that. Raises TooLittleRoom."""
        log, room = self._log, self._log.log_dir.room
        if room is None:
            return None
        self._begin(sources)
        services = log.services
        size = await services.executor.run(most_bytes, services.files, sources, log.config)
        reservation = room.reserve(size)
        if reservation is None:  # what was replaced before is of no use to anybody
            await services.chores.make_room(log.log_dir)
            self._check()
            reservation = room.reserve(size)
        if reservation is None:
            raise TooLittleRoom(self._segments[sources[0].base_offset], size)
        return reservation

    async def _rewrite_as_fits(self, together: Sequence[Source], now_ms: int, result: Cleaned) -> None:
        """Makes one segment of them or, where there is no room for that, one of each. Raises TooLittleRoom."""
        try:
            await self._rewrite(together, now_ms, result)
        except TooLittleRoom as lack:
            if lack.error or len(together) == 1:
                raise
            for source in together:
                await self._rewrite([source], now_ms, result)

    async def _rewrite(self, sources: Sequence[Source], now_ms: int, result: Cleaned) -> None:
        log, worker = self._log, self._worker
        files, executor = log.services.files, log.services.executor
        base_offset = sources[0].base_offset
        producers = await self._last_batches(base_offset, sources[-1].end_offset)
        reservation = await self._reserve(sources)
        with reservation or nullcontext():
            try:
                await worker.call(
                    CleaningWork.begin_rewriting,
                    self._to_read(sources),
                    producers,
                    self._cleanable.end_offset,
                    now_ms,
                    log.config.delete_retention_ms,
                    log.config.index_interval_bytes,
                )
                await self._work(reservation)
                cleaned = await worker.call(CleaningWork.cleaned)
                self._check()
                if log.unflushed:  # what goes may go for the sake of what came later: a producer's next batch, a marker
                    await log.flush()
                    self._check()
                await executor.run(cleaned_files.make_ready, files, log.dir, base_offset)
                self._check()
            except BaseException as error:
                if log.log_dir.online:  # else the next start does it
                    with trio.CancelScope(shield=True):
                        await executor.run(cleaned_files.discard, files, log.dir, base_offset)
                if isinstance(error, OSError) and error.errno in _FULL:
                    size = sum(source.size for source in sources)
                    raise TooLittleRoom(self._segments[base_offset], size, error) from error
                raise
        before = [self._segments[source.base_offset] for source in sources]
        swap_in(log, cleaned, before)
        self._begin(())
        result.bytes_before += sum(source.size for source in sources)
        result.bytes_after += cleaned.size
        await executor.run(files.sync_dir, log.dir)

    async def _last_batches(self, start: int, end: int) -> dict[int, LastBatch]:
        """Of the producers whose last batch may lie in [start, end), by id."""
        found = {}
        for number, entry in enumerate(list(self._log.producer_state.entries.values()), 1):
            last_offset = entry.last_offset
            if last_offset == NO_OFFSET or start <= last_offset < end:
                found[entry.producer_id] = LastBatch(last_offset, entry.epoch)
            if number % _PRODUCERS_PER_TURN == 0:
                await trio.lowlevel.checkpoint()
        return found


def swap_in(log: Log, cleaned: CleanedSegment, sources: Sequence[Segment]) -> None:
    """Puts the segment, which was made ready, in the place of those it was made of. Raises KAFKA_STORAGE_ERROR.

    Who still sends from an old one keeps its file; a crash amid this is completed at the next start.
    """
    services = log.services
    files, base_offset = services.files, cleaned.base_offset
    first = sources[0]
    try:
        modified_ms = sources[-1].modified_ms()
        truncating.remove_files(log, sources, snapshot_stays=base_offset, replaced=True)
        log.producer_state.end_transactions_in_snapshot(base_offset)
        cleaned_files.rename(files, log.dir, base_offset, layout.SWAP, "")
        segment = Segment(
            files,
            services.open_files,
            log.dir,
            base_offset,
            size=cleaned.size,
            created_ms=first.created_ms,
            index_interval=log.config.index_interval_bytes,
            has_transactions=cleaned.has_transactions,
        )
        files.set_modified_ms(segment.path(layout.LOG), modified_ms)
    except OSError as error:
        raise log.failed("cleaning", error) from error
    segment.newest = cleaned.newest
    log.segments.replace(sources, [segment])
    log.names_version += 1
