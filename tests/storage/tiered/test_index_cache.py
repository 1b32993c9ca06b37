"""Indexes of remote segments on the local disk: fetched once, and bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from kwire.ports.clock import TrioClock
from kwire.ports.executor import Executor, InlineExecutor
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.randomness import SeededRandomness
from kwire.remote.memory import MemoryObjectStore
from kwire.storage import layout
from kwire.storage.services import StorageServices
from kwire.storage.tiered import index_cache
from kwire.storage.tiered.index_cache import IndexCache
from kwire.storage.tiered.remote_segment import RemoteSegment, TopicIdPartition
from kwire.storage.transaction_index import AbortedTransaction

OF = TopicIdPartition("t", bytes(16), 0)
FOLDER = "logs/remote-log-index-cache"


class Reads:
    """Notes what is read of the store, and lets others go on meanwhile."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def draw(self, operation: str, key: str) -> None:
        if operation == "get":
            self.keys.append(key)


class Place:
    def __init__(self, *, max_bytes: int = 1 << 20, ttl_ms: int = -1, executor: Executor | None = None) -> None:
        self.files = MemoryFileSystem()
        self.reads = Reads()
        self.store = MemoryObjectStore(TrioClock(), self.reads)
        services = StorageServices.of(self.files, executor or InlineExecutor(), TrioClock(), SeededRandomness(1))
        limiter = trio.CapacityLimiter(10)
        self.cache = IndexCache(services, self.store, limiter, FOLDER, lambda: max_bytes, ttl_ms)

    async def segments(self, count: int) -> list[RemoteSegment]:
        """Segments whose offset indexes have one entry."""
        found = [RemoteSegment(n.to_bytes(16, "big"), n * 10, n * 10 + 9, 0, 1, ((0, 0),)) for n in range(count)]
        for segment in found:
            await self.store.put(segment.key(OF, layout.OFFSET_INDEX), [(1).to_bytes(4, "big") + bytes(4)])
        await self.cache.open()
        return found


async def test_an_index_is_fetched_once(autojump_clock: trio.testing.MockClock) -> None:
    place = Place()
    (segment,) = await place.segments(1)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(place.cache.offsets, OF, segment)
    assert (await place.cache.offsets(OF, segment)).floor(5).offset == 1
    assert len(place.reads.keys) == 1
    assert len(place.files.list(FOLDER)) == 1


async def test_many_at_once_have_room_for_none(autojump_clock: trio.testing.MockClock) -> None:
    place = Place(max_bytes=0)
    segments = await place.segments(20)
    for _ in range(3):
        async with trio.open_nursery() as nursery:
            for segment in segments:
                nursery.start_soon(place.cache.offsets, OF, segment)
    assert len(place.files.list(FOLDER)) <= 1


async def test_what_was_not_used_for_long_goes(autojump_clock: trio.testing.MockClock) -> None:
    place = Place(ttl_ms=1000)
    old, new = await place.segments(2)
    await place.cache.offsets(OF, old)
    await trio.sleep(2)
    await place.cache.offsets(OF, new)
    assert len(place.files.list(FOLDER)) == 1
    await place.cache.offsets(OF, old)
    assert len(place.reads.keys) == 3


async def test_no_more_files_are_open_than_a_process_may_have(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache, "_MOST_FILES", 5)
    place = Place()
    for segment in await place.segments(20):
        await place.cache.offsets(OF, segment)
    assert len(place.files.list(FOLDER)) == 5


class CountingExecutor(InlineExecutor):
    """Notes the names of what is left to it."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.names.append(function.__name__)
        return await super().run(function, *arguments)


@pytest.mark.parametrize(("count", "beside"), [(0, False), (3, False), (400, True)])
async def test_many_aborted_transactions_are_decoded_beside_the_event_loop(
    count: int, beside: bool, autojump_clock: trio.testing.MockClock
) -> None:
    executor = CountingExecutor()
    place = Place(executor=executor)
    (plain,) = await place.segments(1)
    segment = replace(plain, has_transactions=True)
    aborted = [AbortedTransaction(number, number, number + 1, number) for number in range(count)]
    encoded = b"".join(transaction.encode() for transaction in aborted)
    await place.store.put(segment.key(OF, layout.TRANSACTION_INDEX), [encoded])
    assert await place.cache.transactions(OF, segment) == aborted
    assert ("read" in executor.names) is beside
    assert await place.cache.transactions(OF, plain) == []
