"""The indexes of remote segments, on the local disk as long as they are used (as Kafka's remote-log-index-cache).

The folder lies in a log dir and is emptied at the start: it is a cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import trio

from kwire.ports.files import File
from kwire.protocol import uuids
from kwire.remote.object_store import ObjectStore
from kwire.storage import layout
from kwire.storage.services import StorageServices
from kwire.storage.tiered.index_files import OffsetIndexFile, TimeIndexFile
from kwire.storage.tiered.remote_segment import RemoteSegment, TopicIdPartition
from kwire.storage.transaction_index import AbortedTransaction, decode_transactions

FOLDER = "remote-log-index-cache"

_DECODED_HERE = 10_000
"""Bytes of a .txnindex that are decoded by the event loop itself: less than a millisecond."""
_MOST_FILES = 500
"""Each of them is open."""
_MOST_BYTES = 1 << 31
"""No index is larger."""


class _Cached(NamedTuple):
    file: File
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
        folder: str,
        max_bytes: Callable[[], int],
        ttl_ms: int,
    ) -> None:
        """`folder`: where the files lie. `max_bytes()`: of all of them. Unused ones go after `ttl_ms` (-1: never)."""
        self._services = services
        self._store = store
        self._limiter = limiter
        self._folder = folder
        self._max_bytes = max_bytes
        self._ttl_ms = ttl_ms
        self._files: OrderedDict[str, _Cached] = OrderedDict()
        self._size = 0
        self._written = 0
        """Part of each file's name: one that is fetched again does not meet the removal of the former."""
        self._fetching: dict[str, trio.Lock] = {}

    async def open(self) -> None:
        """Makes the folder, or empties it. Raises OSError."""
        await self._services.executor.run(self._empty)

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

    async def _file(self, of: TopicIdPartition, segment: RemoteSegment, suffix: str) -> File:
        name = f"{segment.start_offset}_{uuids.to_text(segment.id)}{suffix}"
        lock = self._fetching.setdefault(name, trio.Lock())
        try:
            async with lock:
                cached = self._files.get(name)
                if cached is None:
                    async with self._limiter:
                        data = await self._store.get(segment.key(of, suffix), 0, _MOST_BYTES)
                    self._written += 1
                    path = f"{self._folder}/{self._written}_{name}"
                    file = await self._services.executor.run(self._write, path, data)
                    cached = _Cached(file, len(data), 0.0)
                    self._size += len(data)
        finally:
            if not lock.statistics().tasks_waiting:
                self._fetching.pop(name, None)
        self._files[name] = cached._replace(used=self._services.clock.monotonic())
        self._files.move_to_end(name)
        await self._drop(keep=name)
        return cached.file

    def _write(self, path: str, data: bytes) -> File:
        self._services.files.write(path, data)
        return self._services.files.open(path)

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
            await self._services.executor.run(self._remove, doomed)

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                self._services.files.remove(path)
