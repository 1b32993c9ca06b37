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
from kwire.storage.log_dir import LogDir
from kwire.storage.room import Room
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
    def __init__(
        self,
        *,
        max_bytes: int = 1 << 20,
        ttl_ms: int = -1,
        executor: Executor | None = None,
        total_bytes: int = 1 << 40,
    ) -> None:
        self.files = MemoryFileSystem(total_bytes=total_bytes)
        self.reads = Reads()
        self.store = MemoryObjectStore(TrioClock(), self.reads)
        services = StorageServices.of(self.files, executor or InlineExecutor(), TrioClock(), SeededRandomness(1))
        limiter = trio.CapacityLimiter(10)
        log_dir = LogDir(self.files, "logs")
        log_dir.room = Room(self.files, TrioClock(), [log_dir.path], lambda: 0)
        self.cache = IndexCache(services, self.store, limiter, log_dir, lambda: max_bytes, ttl_ms)

    async def segments(self, count: int, entries: int = 1) -> list[RemoteSegment]:
        """Segments whose offset indexes have one entry, or more of the same."""
        found = [RemoteSegment(n.to_bytes(16, "big"), n * 10, n * 10 + 9, 0, 1, ((0, 0),)) for n in range(count)]
        for segment in found:
            await self.store.put(segment.key(OF, layout.OFFSET_INDEX), [entries * ((1).to_bytes(4, "big") + bytes(4))])
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


# A volume that is nearly full

KEPT = 1000
"""What is kept of `TOTAL`; a cache leaves twice as much."""
TOTAL = 20 * KEPT


def leave(place: Place, size: int) -> None:
    """Others write so much that this is left beyond what a cache leaves."""
    place.files.write("/others", b"")
    place.files.write("/others", bytes(place.files.space("")[1] - 2 * KEPT - size))


async def read(place: Place, segments: list[RemoteSegment]) -> None:
    for segment in segments:
        assert (await place.cache.offsets(OF, segment)).floor(segment.start_offset + 5).offset == (
            segment.start_offset + 1
        )


async def test_without_room_indexes_are_read_into_memory(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache, "_MOST_HELD_BYTES", 2000)
    place = Place(total_bytes=TOTAL)
    segments = await place.segments(5, entries=100)
    leave(place, 700)
    await read(place, segments)
    assert place.files.list(FOLDER) == []
    await read(place, segments[-2:])
    assert len(place.reads.keys) == 5  # so many are held
    await read(place, segments[:1])
    assert len(place.reads.keys) == 6
    leave(place, 3000)
    await read(place, segments[1:3])
    assert len(place.files.list(FOLDER)) == 2
    await read(place, segments[:1])
    assert len(place.files.list(FOLDER)) == 3  # what was held in memory is not any more


async def test_where_room_is_short_others_make_room(autojump_clock: trio.testing.MockClock) -> None:
    place = Place(total_bytes=TOTAL)
    segments = await place.segments(5, entries=100)
    leave(place, 1700)
    await read(place, segments)
    assert len(place.files.list(FOLDER)) == 2
    assert place.files.space("")[1] >= 2 * KEPT
    await read(place, segments[-2:])
    assert len(place.reads.keys) == 5


@pytest.mark.parametrize("operation", ["open", "write"])
async def test_a_write_that_fails_leaves_nothing_and_is_told_of_once(
    operation: str, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place()
    segments = await place.segments(3)
    for segment in segments:
        await place.store.put(segment.key(OF, layout.TIME_INDEX), [bytes(12)])

    def fault(done: str, path: str, size: int) -> int | None:
        if done != operation or not path.startswith(FOLDER):
            return None
        if done == "write":
            return size // 2
        raise OSError(5, "Input/output error", path)

    place.files.fault = fault
    await read(place, segments)
    assert (await place.cache.times(OF, segments[0])).floor(5).timestamp == 0
    assert place.files.list(FOLDER) == []
    assert len(caplog.messages) == 1
    place.files.fault = None
    await read(place, segments)
    assert len(place.reads.keys) == 4
    await read(place, await place.segments(4))
    assert len(place.files.list(FOLDER)) == 1


@pytest.mark.parametrize("operation", ["make_dirs", "list", "remove"])
async def test_a_folder_that_cannot_be_used(
    operation: str, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(max_bytes=0)
    place.files.make_dirs(FOLDER)
    place.files.write(f"{FOLDER}/old", b"")

    def fault(done: str, path: str, size: int) -> None:
        if done == operation:
            raise OSError(28, "No space left on device", path)

    place.files.fault = fault
    await read(place, await place.segments(3))
    assert caplog.messages != []
