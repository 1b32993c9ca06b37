"""Looking up offsets by time (ListOffsets). All of it may read from disk, so all of it runs in worker threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from kwire.ports.files import File
from kwire.protocol.records.header import NO_LEADER_EPOCH
from kwire.protocol.records.record import iter_times
from kwire.storage.batch_walk import headers
from kwire.storage.segment import Segment
from kwire.storage.time_index import NO_TIMESTAMP, TimestampOffset

if TYPE_CHECKING:
    from kwire.storage.log import Log


class FoundOffset(NamedTuple):
    """A record: its timestamp (ms), its offset, and the leader epoch of its batch (-1 if unknown)."""

    timestamp: int
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH


async def load_newest(log: Log, segments: list[Segment]) -> list[TimestampOffset]:
    """The newest timestamp of each segment; (-1, base offset) for one that is removed meanwhile.

    Raises KAFKA_STORAGE_ERROR.
    """
    while unknown := [segment for segment in segments if segment.newest is None]:
        versions = [segment.version for segment in unknown]
        try:
            loaded = await log.services.executor.run(_load_each, unknown)
        except OSError as error:
            raise log.failed("look-up by time", error) from error
        for segment, newest, version in zip(unknown, loaded, versions, strict=True):
            if newest is None and segment.version != version and segment in log.segments:
                continue  # its file was not gone, but moved
            segment.newest = newest or TimestampOffset(NO_TIMESTAMP, segment.base_offset)
    return [segment.newest or TimestampOffset(NO_TIMESTAMP, segment.base_offset) for segment in segments]


def _load_each(segments: list[Segment]) -> list[TimestampOffset | None]:
    found: list[TimestampOffset | None] = []
    for segment in segments:
        try:
            found.append(segment.load_newest())
        except FileNotFoundError:
            found.append(None)
    return found


async def offset_for_timestamp(log: Log, timestamp: int) -> FoundOffset | None:
    """See `Log.offset_for_timestamp`."""
    return await _settled(log, lambda: _offset_for_timestamp(log, timestamp))


async def max_timestamp_offset(log: Log) -> FoundOffset | None:
    """See `Log.max_timestamp_offset`."""
    return await _settled(log, lambda: _max_timestamp_offset(log))


async def _settled(log: Log, look_up: Callable[[], Awaitable[FoundOffset | None]]) -> FoundOffset | None:
    """What is found while no segment is taken out: a cleaning puts another one of the same name in its place."""
    while True:
        version = log.segments.version
        found = await look_up()
        if version == log.segments.version:
            return found


async def _offset_for_timestamp(log: Log, timestamp: int) -> FoundOffset | None:
    segments = log.segments.from_offset(log.log_start_offset)
    newest = await load_newest(log, segments)
    for segment, latest in zip(segments, newest, strict=True):
        if latest.timestamp >= timestamp:
            found = await _search(log, segment, _first_not_older, timestamp, log.log_start_offset)
            if found is not None:
                return found
    return None


async def _max_timestamp_offset(log: Log) -> FoundOffset | None:
    segments = log.segments.from_offset(log.log_start_offset)
    newest = await load_newest(log, segments)
    latest = max(newest, key=lambda candidate: candidate.timestamp)
    return await _search(log, segments[newest.index(latest)], _first_of_time, latest.timestamp, latest.offset)


_Search = Callable[[Segment, File, int, int, int], FoundOffset | None]
"""A search through the batches of one segment: (segment, its file, its size, timestamp, offset)."""


async def _search(log: Log, segment: Segment, search: _Search, timestamp: int, offset: int) -> FoundOffset | None:
    """What the search finds; None too where the segment was removed since it was picked."""
    log.check_usable()
    if segment not in log.segments:
        return None
    try:
        return await log.services.executor.run(search, segment, segment.file, segment.size, timestamp, offset)
    except OSError as error:
        raise log.failed("look-up by time", error) from error


def _first_not_older(segment: Segment, file: File, size: int, timestamp: int, offset: int) -> FoundOffset | None:
    """The first record at or after `offset` whose time is `timestamp` or later."""
    indexes = segment.indexes or segment.load_indexes(file)
    start = indexes.offsets.floor(max(indexes.times.floor(timestamp).offset, offset)).position
    for position, header in headers(file, start, size):
        if header.max_timestamp >= timestamp and header.last_offset >= offset:
            for its_time, its_offset in iter_times(file.pread(header.size, position)):
                if its_time >= timestamp and its_offset >= offset:
                    return FoundOffset(its_time, its_offset, header.leader_epoch)
    return None


def _first_of_time(segment: Segment, file: File, size: int, timestamp: int, offset: int) -> FoundOffset | None:
    """The first record of exactly this time; `offset` is the last one of the batch that holds it."""
    indexes = segment.indexes or segment.load_indexes(file)
    for position, header in headers(file, indexes.offsets.floor(offset).position, size):
        if header.max_timestamp == timestamp:
            for its_time, its_offset in iter_times(file.pread(header.size, position)):
                if its_time == timestamp:
                    return FoundOffset(timestamp, its_offset, header.leader_epoch)
    return None
