"""Coroutines of asyncio's run for Trio tasks: what they return and raise, and how they are cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
import trio

from kwire.ports.asyncio_thread import AsyncioThread


@pytest.fixture
async def thread() -> AsyncIterator[AsyncioThread]:
    thread = AsyncioThread("test-asyncio")
    yield thread
    await thread.close()


async def test_what_is_returned_and_raised(thread: AsyncioThread) -> None:
    async def half(number: int) -> int:
        await asyncio.sleep(0)
        if number % 2:
            raise ValueError(f"{number} is odd")
        return number // 2

    assert await thread.run(half, 4) == 2
    with pytest.raises(ValueError, match="5 is odd"):
        await thread.run(half, 5)


async def test_many_at_once_in_one_thread(thread: AsyncioThread) -> None:
    meeting = asyncio.Barrier(20)
    threads = set()

    async def meet() -> None:
        threads.add(threading.current_thread())
        await meeting.wait()

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(thread.run, meet)
    assert {one.name for one in threads} == {"test-asyncio"}


async def test_a_cancelled_call_has_ended_when_trio_goes_on(thread: AsyncioThread) -> None:
    ended = []
    begun = threading.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(thread.run, hang)
            await trio.to_thread.run_sync(begun.wait)
            scope.cancel()
    assert scope.cancelled_caught
    assert ended == [True]


async def test_what_was_done_in_spite_of_a_cancellation_is_returned(thread: AsyncioThread) -> None:
    begun = threading.Event()

    async def stubborn() -> str:
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "done"
        return "woken"

    results = []

    async def call() -> None:
        results.append(await thread.run(stubborn))

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.to_thread.run_sync(begun.wait)
            scope.cancel()
    assert results == ["done"]


async def test_a_call_after_a_cancellation_does_not_begin(thread: AsyncioThread) -> None:
    async def never() -> None:
        raise AssertionError("began")

    with trio.CancelScope() as scope:
        scope.cancel()
        await thread.run(never)
    assert scope.cancelled_caught


@pytest.mark.parametrize("obeys", [True, False])
async def test_a_call_may_end_in_order(thread: AsyncioThread, obeys: bool) -> None:
    """One that does not in the time it is given is cancelled like any other."""
    told: list[asyncio.Event] = []
    begun = threading.Event()
    ended = []

    async def work() -> None:
        told.append(asyncio.Event())
        begun.set()
        try:
            await told[0].wait()
            if not obeys:
                await asyncio.sleep(3600)
            ended.append("in order")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(thread.run_with_grace, lambda: told[0].set(), 0.05 if not obeys else 60, work)
            await trio.to_thread.run_sync(begun.wait)
            scope.cancel()
    assert scope.cancelled_caught
    if not obeys:
        await thread.run(asyncio.sleep, 0)
    assert ended == ["in order" if obeys else "cancelled"]


async def test_a_call_with_grace_returns_and_raises(thread: AsyncioThread) -> None:
    async def fail(text: str) -> str:
        if text:
            return text
        raise KeyError("nothing")

    assert await thread.run_with_grace(lambda: None, 1, fail, "text") == "text"
    with pytest.raises(KeyError):
        await thread.run_with_grace(lambda: None, 1, fail, "")


async def test_closed_it_leaves_no_thread() -> None:
    thread = AsyncioThread("to-be-closed")
    await thread.close()
    await thread.run(asyncio.sleep, 0)
    assert "to-be-closed" in {one.name for one in threading.enumerate()}
    await thread.close()
    assert "to-be-closed" not in {one.name for one in threading.enumerate()}
