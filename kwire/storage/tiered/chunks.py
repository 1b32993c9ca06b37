"""Large objects, read in chunks that are kept for a while, and fetched before they are asked for.

Who reads an object from its beginning to its end gets the next chunks while he is busy with this one. What all readers
together may hold is bounded: `cache_bytes` of chunks that were read, `ahead_bytes` of chunks on their way before they
are asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import trio

from kwire.remote.errors import RemoteStorageError, RemoteStorageUnavailable
from kwire.remote.object_store import ObjectStore


class RemoteObject(NamedTuple):
    """An object whose size is known."""

    key: str
    size: int


_Chunk = tuple[str, int]
"""(key of the object, number of the chunk)"""


class _Kept(NamedTuple):
    data: bytes
    read: float
    """When last, by Trio's clock."""


class _Loading:
    """A chunk on its way."""

    __slots__ = ("ahead", "data", "done", "error", "size")

    def __init__(self, size: int, *, ahead: bool) -> None:
        self.size = size
        self.ahead = ahead
        self.done = trio.Event()
        self.data: bytes | None = None
        """Present when it has come: for who waited, wherever the cache has gone meanwhile."""
        self.error: RemoteStorageError | None = None


class ChunkCache:
    """Chunks of the objects of one store. For the event loop's thread."""

    def __init__(
        self,
        store: ObjectStore,
        limiter: trio.CapacityLimiter,
        spawn: Callable[..., None],
        *,
        chunk_bytes: int,
        cache_bytes: int,
        ahead_bytes: int,
        keep_s: float = float("inf"),
    ) -> None:
        """`limiter` bounds the reads under way; `spawn` starts a task that outlives who asked for the chunk.

        `keep_s`: after which a chunk that nobody read goes, as long as `run` runs.
        """
        self._keep_s = keep_s
        self._store = store
        self._limiter = limiter
        self._spawn = spawn
        self._chunk_bytes = chunk_bytes
        self._cache_bytes = cache_bytes
        self._ahead_bytes = ahead_bytes
        self._chunks: OrderedDict[_Chunk, _Kept] = OrderedDict()
        """Those read longest ago first."""
        self._held = 0
        self._loading: dict[_Chunk, _Loading] = {}

    @property
    def held(self) -> int:
        """Bytes of the chunks that are kept."""
        return self._held

    async def run(self) -> None:
        """Drops what nobody reads any more, until cancelled."""
        while True:
            oldest = next(iter(self._chunks.values()), None)
            due = self._keep_s + (trio.current_time() if oldest is None else oldest.read)
            await trio.sleep_until(due)
            while self._chunks and next(iter(self._chunks.values())).read + self._keep_s <= trio.current_time():
                self._drop(next(iter(self._chunks)))

    async def read(self, of: RemoteObject, start: int, end: int) -> memoryview:
        """From byte `start` on, at least one, up to `end` (exclusive) or the end of a chunk.

        `end` says how far the reader will go: what is between is fetched ahead. Raises RemoteStorageError.
        """
        number = start // self._chunk_bytes
        data = await self._chunk(of, number)
        sequential = end > (number + 1) * self._chunk_bytes or (of.key, number - 1) in self._chunks
        if sequential:
            self._fetch_ahead(of, number + 1)
        first = start - number * self._chunk_bytes
        return memoryview(data)[first : first + end - start]

    async def exactly(self, of: RemoteObject, start: int, end: int) -> bytes:
        """All bytes of [start, end), which must not be more than a batch or so. Raises RemoteStorageError."""
        parts = []
        while start < end:
            part = await self.read(of, start, end)
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def forget(self, key: str) -> None:
        """Drops what is kept of an object that was deleted."""
        for chunk in [chunk for chunk in self._chunks if chunk[0] == key]:
            self._drop(chunk)

    def _drop(self, chunk: _Chunk) -> None:
        self._held -= len(self._chunks.pop(chunk).data)

    async def _chunk(self, of: RemoteObject, number: int) -> bytes:
        chunk = of.key, number
        kept = self._chunks.get(chunk)
        if kept is not None:
            self._chunks[chunk] = kept._replace(read=trio.current_time())
            self._chunks.move_to_end(chunk)
            return kept.data
        loading = self._loading.get(chunk) or self._begin(of, number, ahead=False)
        await loading.done.wait()
        if loading.data is None:
            raise loading.error or RemoteStorageUnavailable(f"the reading of {of.key} was given up")
        return loading.data

    def _begin(self, of: RemoteObject, number: int, *, ahead: bool) -> _Loading:
        start = number * self._chunk_bytes
        loading = _Loading(min(self._chunk_bytes, of.size - start), ahead=ahead)
        self._loading[of.key, number] = loading
        self._spawn(self._load, of, number, loading)
        return loading

    def _fetch_ahead(self, of: RemoteObject, number: int) -> None:
        under_way = sum(loading.size for loading in self._loading.values() if loading.ahead)
        for following in range(number, number + max(1, self._ahead_bytes // self._chunk_bytes)):
            if following * self._chunk_bytes >= of.size:
                break
            chunk = of.key, following
            if chunk in self._chunks or chunk in self._loading:
                continue
            if under_way + self._chunk_bytes > self._ahead_bytes:
                break
            under_way += self._begin(of, following, ahead=True).size

    async def _load(self, of: RemoteObject, number: int, loading: _Loading) -> None:
        start = number * self._chunk_bytes
        try:
            async with self._limiter:
                data = await self._store.get(of.key, start, start + loading.size)
            if len(data) != loading.size:
                raise RemoteStorageError(f"{of.key} ends at byte {start + len(data)}, it should have {of.size} bytes")
            loading.data = data
            self._keep((of.key, number), data)
        except RemoteStorageError as error:
            loading.error = error
        finally:
            del self._loading[of.key, number]
            loading.done.set()

    def _keep(self, chunk: _Chunk, data: bytes) -> None:
        self._chunks[chunk] = _Kept(data, trio.current_time())
        self._held += len(data)
        while self._held > self._cache_bytes and len(self._chunks) > 1:
            self._drop(next(iter(self._chunks)))
