"""Chunks of large objects: kept, fetched ahead, and bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from kwire.ports.clock import TrioClock
from kwire.remote.errors import RemoteStorageError
from kwire.remote.faults import Fault, Kind
from kwire.remote.memory import MemoryObjectStore
from kwire.storage.tiered.chunks import ChunkCache, RemoteObject

CONTENT = bytes(range(256)) * 4
WHOLE = RemoteObject("o", len(CONTENT))


class Recorder:
    """Draws no fault but those that are set, and notes what is read."""

    def __init__(self) -> None:
        self.reads: list[str] = []
        self.fault: Fault | None = None

    def draw(self, operation: str, key: str) -> Fault | None:
        if operation == "get":
            self.reads.append(key)
        return self.fault


@asynccontextmanager
async def caching(
    *, chunk_bytes: int = 100, cache_bytes: int = 500, ahead_bytes: int = 200, keep_s: float = float("inf")
) -> AsyncIterator[tuple[ChunkCache, Recorder]]:
    recorder = Recorder()
    store = MemoryObjectStore(TrioClock(), recorder)
    await store.put("o", [CONTENT])
    async with trio.open_nursery() as nursery:
        yield (
            ChunkCache(
                store,
                trio.CapacityLimiter(2),
                nursery.start_soon,
                chunk_bytes=chunk_bytes,
                cache_bytes=cache_bytes,
                ahead_bytes=ahead_bytes,
                keep_s=keep_s,
            ),
            recorder,
        )


async def test_what_is_read_is_what_is_there(autojump_clock: trio.testing.MockClock) -> None:
    async with caching() as (chunks, _):
        for start, end in ((0, 1), (0, 1024), (99, 101), (250, 700), (1023, 1024)):
            assert await chunks.exactly(WHOLE, start, end) == CONTENT[start:end]
        assert bytes(await chunks.read(WHOLE, 150, 1000)) == CONTENT[150:200]


async def test_a_reader_from_end_to_end_finds_most_fetched_ahead(autojump_clock: trio.testing.MockClock) -> None:
    async with caching() as (chunks, recorder):
        recorder.fault = Fault(Kind.SLOW, 1)
        position, waits = 0, []
        while position < WHOLE.size:
            began = trio.current_time()
            position += len(await chunks.read(WHOLE, position, WHOLE.size))
            waits.append(trio.current_time() - began)
            await trio.sleep(2)  # busy with what it got
        assert waits == [1.0] + 10 * [0.0]
        assert len(recorder.reads) == 11  # each chunk once


async def test_a_single_look_fetches_nothing_ahead(autojump_clock: trio.testing.MockClock) -> None:
    async with caching() as (chunks, recorder):
        await chunks.read(WHOLE, 520, 560)
        await trio.testing.wait_all_tasks_blocked()
        assert len(recorder.reads) == 1


async def test_what_is_kept_is_bounded(autojump_clock: trio.testing.MockClock) -> None:
    async with caching() as (chunks, _):
        for start in range(0, 1024, 50):
            await chunks.exactly(WHOLE, start, min(start + 50, 1024))
            assert chunks.held <= 500
        chunks.forget("o")
        assert chunks.held == 0


async def test_what_nobody_reads_goes(autojump_clock: trio.testing.MockClock) -> None:
    async with caching(keep_s=60) as (chunks, _), trio.open_nursery() as nursery:
        nursery.start_soon(chunks.run)
        await chunks.exactly(WHOLE, 0, 10)
        await trio.sleep(40)
        await chunks.exactly(WHOLE, 510, 520)
        await trio.sleep(30)
        assert chunks.held == 100
        await chunks.exactly(WHOLE, 510, 520)
        await trio.sleep(59)
        assert chunks.held == 100
        await trio.sleep(62)
        assert chunks.held == 0
        nursery.cancel_scope.cancel()


async def test_many_readers_of_a_chunk_wait_for_one_read(autojump_clock: trio.testing.MockClock) -> None:
    async with caching() as (chunks, recorder):
        recorder.fault = Fault(Kind.SLOW, 5)
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(chunks.exactly, WHOLE, 10, 20)
        assert len(recorder.reads) == 1


async def test_a_reader_that_gives_up_leaves_the_others_theirs(autojump_clock: trio.testing.MockClock) -> None:
    async with caching() as (chunks, recorder):
        recorder.fault = Fault(Kind.SLOW, 5)
        with trio.move_on_after(1):
            await chunks.exactly(WHOLE, 10, 20)
        assert await chunks.exactly(WHOLE, 10, 20) == CONTENT[10:20]
        assert len(recorder.reads) == 1


async def test_a_failure_is_told_to_all_and_not_kept(autojump_clock: trio.testing.MockClock) -> None:
    async with caching() as (chunks, recorder):
        recorder.fault = Fault(Kind.UNAVAILABLE)

        async def fails(read: Callable[[], object]) -> None:
            with pytest.raises(RemoteStorageError):
                await chunks.exactly(WHOLE, 0, 10)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(fails, None)
        recorder.fault = None
        assert await chunks.exactly(WHOLE, 0, 10) == CONTENT[:10]


async def test_an_object_that_is_shorter_than_it_should_be(autojump_clock: trio.testing.MockClock) -> None:
    async with caching() as (chunks, _):
        with pytest.raises(RemoteStorageError, match="ends at byte 1024"):
            await chunks.exactly(RemoteObject("o", 1050), 1020, 1040)
