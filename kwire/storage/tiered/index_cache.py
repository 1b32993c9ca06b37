"""The indexes of remote segments, on the local disk as long as they are used (as Kafka's remote-log-index-cache).

The folder lies in a log dir and is emptied at the start: it is a cache. Where the dir's volume has no room for a file,
and nothing older can make any, or where a file cannot be written, the index is read into memory instead, of which a few
are held. So the cache is never a reason for a log dir to be full, or to fail.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import NamedTuple

import trio

from kwire.protocol import uuids
from kwire.remote.object_store import ObjectStore
from kwire.storage import layout
from kwire.storage.log_dir import LogDir
from kwire.storage.services import StorageServices
from kwire.storage.tiered.index_files import IndexFile, OffsetIndexFile, TimeIndexFile
from kwire.storage.tiered.remote_segment import RemoteSegment, TopicIdPartition
from kwire.storage.transaction_index import AbortedTransaction, decode_transactions

logger = logging.getLogger(__name__)

FOLDER = "remote-log-index-cache"

_DECODED_HERE = 10_000
"""Bytes of a .txnindex that are decoded by the event loop itself: less than a millisecond."""
_MOST_FILES = 500
"""Each of them is open."""
_MOST_BYTES = 1 << 31
"""No index is larger."""
_MOST_HELD_BYTES = 32 << 20
"""Of indexes that have no file; what reads under way use comes on top."""


class HeldIndex(NamedTuple):
    """An index that has no file."""

    path: str
    """Where it would be."""
    data: bytes

    def pread(self, size: int, position: int) -> bytes:
        return self.data[position : position + size]

    def size(self) -> int:
        return len(self.data)


class _Cached(NamedTuple):
    file: IndexFile
    size: int
    used: float
    """When, by the monotonic clock."""


class IndexCache:
    """For the event loop's thread. Not before `open`."""

    def __init__(
        self,
        services: StorageServices,
        store: ObjectStore,
        limiter: trio.CapacityLimiter,
        log_dir: LogDir,
        max_bytes: Callable[[], int],
        ttl_ms: int,
    ) -> None:
        """`log_dir`: where the files lie. `max_bytes()`: of all of them. Unused ones go after `ttl_ms` (-1: never)."""
        self._services = services
        self._store = store
        self._limiter = limiter
        self._log_dir = log_dir
        self._folder = log_dir.file(FOLDER)
        self._max_bytes = max_bytes
        self._ttl_ms = ttl_ms
        self._files: OrderedDict[str, _Cached] = OrderedDict()
        self._size = 0
        self._held: OrderedDict[str, HeldIndex] = OrderedDict()
        self._held_size = 0
        self._broken = False
        """Whether it was told that files cannot be written, and none was since."""
        self._written = 0
        """Part of each file's name: one that is fetched again does not meet the removal of the former."""
        self._fetching: dict[str, trio.Lock] = {}

    async def open(self) -> None:
        """Makes the folder, or empties it."""
        try:
            await self._services.executor.run(self._empty)
        except OSError as error:
            self._tell(error)

    def _empty(self) -> None:
        files = self._services.files
        files.make_dirs(self._folder)
        for name in files.list(self._folder):
            files.remove(f"{self._folder}/{name}")

    async def offsets(self, of: TopicIdPartition, segment: RemoteSegment) -> OffsetIndexFile:
        """Raises RemoteStorageError, CorruptIndex, OSError."""
        return OffsetIndexFile(await self._file(of, segment, layout.OFFSET_INDEX), segment.start_offset)

    async def times(self, of: TopicIdPartition, segment: RemoteSegment) -> TimeIndexFile:
        """Raises RemoteStorageError, CorruptIndex, OSError."""
        return TimeIndexFile(await self._file(of, segment, layout.TIME_INDEX), segment.start_offset)

    async def transactions(self, of: TopicIdPartition, segment: RemoteSegment) -> list[AbortedTransaction]:
        """Those whose abort marker lies in the segment. Raises RemoteStorageError, CorruptIndex, OSError."""
        if not segment.has_transactions:
            return []
        file = await self._file(of, segment, layout.TRANSACTION_INDEX)

        def read() -> list[AbortedTransaction]:
            return decode_transactions(file.pread(file.size(), 0), segment.start_offset)

        # It may tell of very many, which are decoded beside the event loop.
        return await self._services.executor.run(read) if file.size() > _DECODED_HERE else read()

    async def _file(self, of: TopicIdPartition, segment: RemoteSegment, suffix: str) -> IndexFile:
        name = f"{segment.start_offset}_{uuids.to_text(segment.id)}{suffix}"
        lock = self._fetching.setdefault(name, trio.Lock())
        try:
            async with lock:
                held = self._held.get(name)
                if held is not None:
                    self._held.move_to_end(name)
                    return held
                cached = self._files.get(name)
                if cached is None:
                    async with self._limiter:
                        data = await self._store.get(segment.key(of, suffix), 0, _MOST_BYTES)
                    self._written += 1
                    path = f"{self._folder}/{self._written}_{name}"
                    file = await self._put(path, data)
                    if file is None:
                        return self._hold(name, HeldIndex(path, data))
                    cached = _Cached(file, len(data), 0.0)
                    self._size += len(data)
        finally:
            if not lock.statistics().tasks_waiting:
                self._fetching.pop(name, None)
        self._files[name] = cached._replace(used=self._services.clock.monotonic())
        self._files.move_to_end(name)
        await self._drop(keep=name)
        return cached.file

    async def _put(self, path: str, data: bytes) -> IndexFile | None:
        """Writes a file; None where that cannot be, or there is no room for it."""
        room = self._log_dir.room
        reservation = None
        if room is not None:
            reservation = room.reserve(len(data), for_cache=True)
            if reservation is None and self._size >= len(data):
                await self._make_room(len(data))
                reservation = room.reserve(len(data), for_cache=True)
            if reservation is None:
                return None
        with reservation or nullcontext():
            try:
                file = await self._services.executor.run(self._write, path, data)
            except OSError as error:
                self._tell(error)
                return None
        self._broken = False
        self._held.clear()
        self._held_size = 0
        return file

    def _write(self, path: str, data: bytes) -> IndexFile:
        files = self._services.files
        try:
            files.write(path, data)
            return files.open(path)
        except OSError:
            with suppress(OSError):  # a part of it is of no use
                files.remove(path)
            raise

    def _hold(self, name: str, index: HeldIndex) -> HeldIndex:
        if index.size() <= _MOST_HELD_BYTES:
            self._held[name] = index
            self._held_size += index.size()
        while self._held_size > _MOST_HELD_BYTES:
            _, gone = self._held.popitem(last=False)
            self._held_size -= gone.size()
        return index

    def _tell(self, error: OSError) -> None:
        if not self._broken:
            self._broken = True
            logger.warning("indexes of remote segments are read into memory, since %s can't be used: %s", FOLDER, error)

    async def _make_room(self, size: int) -> None:
        """Removes what was not used for longest, so many bytes of it."""
        doomed: list[str] = []
        while self._files and size > 0:
            _, cached = self._files.popitem(last=False)
            doomed.append(cached.file.path)
            self._size -= cached.size
            size -= cached.size
        await self._remove(doomed)

    async def _drop(self, keep: str) -> None:
        """Removes what is too much or was not used for too long."""
        oldest_kept = self._services.clock.monotonic() - self._ttl_ms / 1000 if self._ttl_ms >= 0 else float("-inf")
        doomed: list[str] = []
        for name, cached in self._files.items():
            enough = self._size <= self._max_bytes() and len(self._files) - len(doomed) <= _MOST_FILES
            if name == keep or (enough and cached.used >= oldest_kept):
                break
            doomed.append(cached.file.path)
            self._size -= cached.size
        for _ in doomed:
            self._files.popitem(last=False)
        if doomed:
            await self._remove(doomed)

    async def _remove(self, paths: list[str]) -> None:
        """What cannot be removed stays until the next start."""
        error = await self._services.executor.run(self._remove_each, paths)
        if error is not None:
            self._tell(error)

    def _remove_each(self, paths: list[str]) -> OSError | None:
        failure = None
        for path in paths:
            try:
                self._services.files.remove(path)
            except FileNotFoundError:
                pass
            except OSError as error:
                failure = error
        return failure
