"""Fetches and look-ups by time of what is in remote storage only.

A read goes on when who asked has been answered without it, since he will ask again: what it brings is kept for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import trio

from kwire.cluster.replica import MAX_TIMESTAMP
from kwire.cluster.tiering.metadata import RemoteLogMetadata
from kwire.cluster.tiering.settings import TieringSettings
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.remote.errors import RemoteStorageError
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.throttle import Throttle
from kwire.storage.tiered.remote_reading import RemoteReader, RemoteSlice
from kwire.storage.tiered.remote_segment import RemoteSegment, TopicIdPartition
from kwire.storage.tiered.remote_segments import RemoteSegments
from kwire.storage.timestamps import FoundOffset
from kwire.storage.transaction_index import AbortedTransaction, overlapping

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition
    from kwire.storage.log import Log

logger = logging.getLogger(__name__)

T = TypeVar("T")


class RemoteFetch(NamedTuple):
    """What a fetch of one partition gets from remote storage; no slice where it takes too long."""

    slice: RemoteSlice | None = None
    aborted: list[AbortedTransaction] | None = None
    """The aborted transactions that the records meet, if they were asked for."""
    here_from: int | None = None
    """Set: nothing is there before this offset, from which on the log is here."""


class _Outcome(Generic[T]):
    __slots__ = ("done", "error", "value")

    def __init__(self) -> None:
        self.done = trio.Event()
        self.value: T | None = None
        self.error: KafkaError | None = None


class RemoteReads:
    """For the event loop's thread."""

    def __init__(
        self,
        metadata: RemoteLogMetadata,
        reader: RemoteReader,
        settings: TieringSettings,
        throttle: Throttle,
        spawn: Callable[..., None],
    ) -> None:
        """`throttle` lets the bytes read pass; `spawn` starts a task that outlives who asked."""
        self._metadata = metadata
        self._reader = reader
        self._settings = settings
        self._throttle = throttle
        self._spawn = spawn
        self._pending = 0

    async def fetch(
        self, partition: Partition, offset: int, max_bytes: int, *, min_one: bool, committed: bool
    ) -> RemoteFetch:
        """From the first batch that ends at or after `offset` on, up to `max_bytes`, all of one segment.

        That may be one behind the segment which has the offset in its range: a topic that was compacted once may have
        lost the last batches of it, and whole segments.

        `committed`: with the aborted transactions. Raises REPLICA_NOT_AVAILABLE while it is not known what lies in
        remote storage, OFFSET_OUT_OF_RANGE where nothing has that offset, KAFKA_STORAGE_ERROR where remote storage
        cannot be read, and what `local_log` raises.
        """
        log = partition.local_log()
        of = identity(partition)
        segments = self._segments(of)
        epochs = log.epochs.entries()
        first = segments.find(offset, epochs)
        if first is None:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {partition.name}, which does not exist in remote "
                f"storage, and the local log begins at {log.local_start_offset}",
            )

        async def read() -> RemoteFetch:
            at, segment = offset, first
            while True:
                await self._throttle(min(max_bytes, segment.size))
                found = await self._reader.read(of, segment, at, max_bytes, min_one=min_one)
                if found is not None:
                    break
                at = segment.end_offset + 1
                if at >= log.local_start_offset:
                    return RemoteFetch(here_from=at)
                following = segments.next_from(at, epochs)
                if following is None:
                    return RemoteFetch(None, [] if committed else None)
                segment = following
            if found.slice is None:
                return RemoteFetch(None, [] if committed else None)
            aborted = None
            if committed:
                aborted = await self._aborted(of, segments, segment, log, at, found.upper_offset)
            return RemoteFetch(found.slice, aborted)

        found = await self._detached(read, self._settings.fetch_wait_s)
        return RemoteFetch(None, [] if committed else None) if found is None else found

    async def _aborted(
        self,
        of: TopicIdPartition,
        segments: RemoteSegments,
        first: RemoteSegment,
        log: Log,
        offset: int,
        upper_offset: int,
    ) -> list[AbortedTransaction]:
        """Those that a read of [offset, upper_offset) meets: their markers may lie far behind, and here."""
        aborted: list[AbortedTransaction] = []
        reached = first.start_offset
        for segment in segments.readable(log.epochs.entries(), first.start_offset):
            if segment.start_offset < reached:
                continue
            more, complete = overlapping(await self._reader.indexes.transactions(of, segment), offset, upper_offset)
            aborted += more
            reached = segment.end_offset + 1
            if complete:
                return aborted
        for local in log.segments.from_offset(reached):
            more, complete = overlapping(local.transactions(), offset, upper_offset)
            aborted += [transaction for transaction in more if transaction not in aborted]
            if complete:
                break
        return aborted

    async def list_offset(self, partition: Partition, timestamp: int, within_ms: int | None) -> FoundOffset | None:
        """The first record whose time (ms) is `timestamp` or later, if it is in remote storage only; else None.

        For MAX_TIMESTAMP the first one of the newest time; None for the other timestamps that are no times. Raises as
        `fetch`, and REQUEST_TIMED_OUT after `within_ms` (None: remote.list.offsets.request.timeout.ms).
        """
        if timestamp < 0 and timestamp != MAX_TIMESTAMP:
            return None
        log = partition.local_log()
        of = identity(partition)
        remote = [
            segment
            for segment in self._segments(of).readable(log.epochs.entries(), log.log_start_offset)
            if segment.start_offset < log.local_start_offset
        ]
        if timestamp == MAX_TIMESTAMP:
            here = await log.max_timestamp_offset()
            timestamp = max((segment.max_timestamp for segment in remote), default=-1)
            if here is not None and here.timestamp >= timestamp:
                return None
        if timestamp < 0:
            return None

        async def look_up() -> tuple[FoundOffset | None]:
            for segment in remote:
                if segment.max_timestamp >= timestamp:
                    found = await self._reader.first_not_older(of, segment, timestamp, log.log_start_offset)
                    if found is not None:
                        return (found if found.offset < log.local_start_offset else None,)
            return (None,)

        within_s = self._settings.look_up_wait_s if within_ms is None else within_ms / 1000
        looked_up = await self._detached(look_up, within_s)
        if looked_up is None:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"The look-up in remote storage of {partition.name} goes on")
        return looked_up[0]

    def _segments(self, of: TopicIdPartition) -> RemoteSegments:
        segments = self._metadata.segments(of)
        if segments is None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"What is in remote storage of {of} is not known yet")
        return segments

    async def _detached(self, read: Callable[[], Awaitable[T]], within_s: float) -> T | None:
        """What `read` gives, or None after `within_s`, or where as many reads are pending as may be; it goes on."""
        if self._pending >= self._settings.most_pending_reads:
            return None
        outcome: _Outcome[T] = _Outcome()
        self._pending += 1
        self._spawn(self._read, read, outcome)
        with trio.move_on_after(within_s):
            await outcome.done.wait()
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    async def _read(self, read: Callable[[], Awaitable[T]], outcome: _Outcome[T]) -> None:
        try:
            outcome.value = await read()
        except KafkaError as error:
            outcome.error = error
        except (RemoteStorageError, CorruptIndex, OSError) as error:
            outcome.error = self._unreadable(error)
        except Exception as error:  # objects that no broker wrote may have anything in them
            logger.exception("a read of remote storage failed")
            outcome.error = self._unreadable(error)
        finally:
            self._pending -= 1
            outcome.done.set()

    @staticmethod
    def _unreadable(error: Exception) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Remote storage can't be read: {error}")


def identity(partition: Partition) -> TopicIdPartition:
    """The partition as remote storage knows it."""
    return TopicIdPartition(partition.topic, partition.topic_id, partition.index)
