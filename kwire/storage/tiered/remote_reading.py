"""Reading remote segments: where a fetch begins and how much it gets, and the first record of a time."""

from __future__ import annotations

import logging
from typing import NamedTuple

from kwire.ports.executor import Executor
from kwire.ports.files import Buffer
from kwire.ports.transport import StreamClosed
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import HEADER_SIZE, BatchHeader, read_header
from kwire.protocol.records.record import iter_times
from kwire.remote.errors import RemoteStorageError
from kwire.storage import layout
from kwire.storage.batch_walk import plausible
from kwire.storage.tiered.chunks import ChunkCache, RemoteObject
from kwire.storage.tiered.index_cache import IndexCache
from kwire.storage.tiered.remote_segment import RemoteSegment, TopicIdPartition
from kwire.storage.timestamps import FoundOffset

logger = logging.getLogger(__name__)


class RemoteSlice:
    """A range of a remote object: a part of a response that comes while it is sent, a chunk at a time."""

    __slots__ = ("_chunks", "_object", "position", "size")

    def __init__(self, chunks: ChunkCache, of: RemoteObject, position: int, size: int) -> None:
        self._chunks = chunks
        self._object = of
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    async def read_from(self, start: int) -> Buffer:
        """From byte `start` of the slice on, at least one. Raises StreamClosed where the object cannot be read."""
        first = self.position + start
        try:
            return await self._chunks.read(self._object, first, self.position + self.size)
        except RemoteStorageError as error:
            logger.warning("an answer is cut short: %s can't be read at %d: %s", self._object.key, first, error)
            raise StreamClosed(str(error)) from error


class RemoteRead(NamedTuple):
    """What answers a fetch."""

    slice: RemoteSlice | None
    """From the first batch that ends at or after the offset; it may end amid a batch. None: nothing fits."""
    upper_offset: int
    """An offset that the slice certainly does not reach."""


class RemoteReader:
    """Reads the segments of one store. Raises RemoteStorageError, CorruptIndex, CorruptBatchError, OSError."""

    def __init__(self, chunks: ChunkCache, indexes: IndexCache, executor: Executor) -> None:
        self.indexes = indexes
        self._chunks = chunks
        self._executor = executor

    async def read(
        self, of: TopicIdPartition, segment: RemoteSegment, offset: int, max_bytes: int, *, min_one: bool
    ) -> RemoteRead | None:
        """From the first batch that ends at or after `offset`, up to `max_bytes`; None where the segment has none.

        With `min_one` the first batch comes however large it is. The slice's beginning is in memory then.
        """
        index = await self.indexes.offsets(of, segment)
        log = RemoteObject(segment.key(of, layout.LOG), segment.size)
        position = index.floor(offset).position
        while (header := await self._header(log, position)) is not None and header.last_offset < offset:
            position += header.size
        if header is None:
            return None
        if max_bytes < header.size and not min_one:
            return RemoteRead(None, offset)
        size = min(max(max_bytes, header.size), segment.size - position)
        upper = index.offset_at_or_after(position + size)
        piece = RemoteSlice(self._chunks, log, position, size)
        return RemoteRead(piece, segment.end_offset + 1 if upper is None else upper)

    async def first_not_older(
        self, of: TopicIdPartition, segment: RemoteSegment, timestamp: int, offset: int
    ) -> FoundOffset | None:
        """The first record at or after `offset` whose time is `timestamp` (ms) or later."""
        times = await self.indexes.times(of, segment)
        index = await self.indexes.offsets(of, segment)
        log = RemoteObject(segment.key(of, layout.LOG), segment.size)
        position = index.floor(max(times.floor(timestamp).offset, offset)).position
        while (header := await self._header(log, position)) is not None:
            if header.max_timestamp >= timestamp and header.last_offset >= offset:
                batch = await self._chunks.exactly(log, position, position + header.size)
                found = await self._executor.run(_first_in_batch, batch, timestamp, offset)
                if found is not None:
                    return FoundOffset(*found, header.leader_epoch)
            position += header.size
        return None

    async def _header(self, log: RemoteObject, position: int) -> BatchHeader | None:
        """That of the batch at `position`; None at the end. Raises CorruptBatchError where there is none."""
        if log.size - position < HEADER_SIZE:
            return None
        header = read_header(await self._chunks.exactly(log, position, position + HEADER_SIZE))
        if not plausible(header, log.size - position):
            raise CorruptBatchError(ErrorCode.CORRUPT_MESSAGE, f"{log.key} has no batch at {position}")
        return header


def _first_in_batch(batch: bytes, timestamp: int, offset: int) -> tuple[int, int] | None:
    """(timestamp, offset). For a worker thread: the batch may have to be decompressed."""
    for its_time, its_offset in iter_times(batch):
        if its_time >= timestamp and its_offset >= offset:
            return its_time, its_offset
    return None
