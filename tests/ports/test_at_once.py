"""What a step runs, where it stops, and that the same code waits like any other in a task."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import trio
import trio.testing

from kwire.ports.at_once import GIVES_WAY, NEEDS_TASK, Signal, give_way, go_on, needs_task, shielded, step


def result(work: Coroutine[Any, Any, object]) -> object:
    """Of a coroutine that comes to its end in this step."""
    with pytest.raises(StopIteration) as ended:
        step(work)
    return ended.value.value


def stops() -> bool:
    """Whether who asks for a task stops here, since a step is said to be under way."""
    asking = needs_task()
    try:
        asking.send(None)
    except StopIteration:
        return False
    asking.close()
    return True


async def double(value: int) -> int:
    return 2 * value


async def wait_and_say(signal: Signal, said: object) -> object:
    await signal.wait()
    return said


def test_what_need_not_wait_comes_to_its_end_in_one_step() -> None:
    async def work() -> int:
        return await double(1) + await double(10)

    assert result(work()) == 22


def test_what_is_raised_comes_through() -> None:
    async def work() -> None:
        await double(1)
        raise KeyError("scripted")

    with pytest.raises(KeyError, match="scripted"):
        step(work())


def test_it_stands_still_until_the_signal_is_set() -> None:
    signal, done = Signal(), []

    async def work() -> str:
        done.append("before")
        await signal.wait()
        done.append("after")
        return "result"

    standing = work()
    assert step(standing) is signal
    assert step(standing) is signal, "it was stepped for something else"
    assert done == ["before"]
    signal.set()
    assert done == ["before"], "to set is not to step"
    assert result(standing) == "result"
    assert done == ["before", "after"]


def test_it_stops_at_each_signal_that_is_not_set() -> None:
    first, second = Signal(), Signal()

    async def work() -> None:
        await first.wait()
        await second.wait()

    standing = work()
    assert step(standing) is first
    first.set()
    assert step(standing) is second
    second.set()
    assert result(standing) is None


def test_a_signal_that_is_set_stops_nobody() -> None:
    signal = Signal()
    signal.set()
    signal.set()
    assert result(wait_and_say(signal, "said")) == "said"


def test_whoever_runs_what_waits_is_told_once() -> None:
    signal, told = Signal(), []
    standing = wait_and_say(signal, "said")
    assert step(standing) is signal
    signal.on_set = lambda: told.append(signal.is_set)
    assert told == []
    signal.set()
    signal.set()
    assert told == [True]
    assert result(standing) == "said"


def test_what_needs_a_task_stops_there() -> None:
    done = []

    async def work() -> None:
        done.append("before")
        await needs_task()
        done.append("after")

    standing = work()
    assert step(standing) is NEEDS_TASK
    assert done == ["before"]
    standing.close()


async def gives_way_twice() -> str:
    await give_way()
    await give_way()
    return "result"


def test_what_gives_way_goes_on_with_the_next_step() -> None:
    standing = gives_way_twice()
    assert step(standing) is GIVES_WAY
    assert step(standing) is GIVES_WAY
    assert result(standing) == "result"


async def test_in_a_task_giving_way_is_a_checkpoint() -> None:
    with trio.testing.assert_checkpoints():
        assert await gives_way_twice() == "result"
    standing = gives_way_twice()
    step(standing)
    with trio.testing.assert_checkpoints():
        assert await go_on(standing) == "result"


async def test_a_task_goes_on_with_what_needs_one() -> None:
    event = trio.Event()

    async def work() -> str:
        await needs_task()
        await trio.lowlevel.checkpoint()
        await event.wait()
        return "result"

    standing = work()
    assert step(standing) is NEEDS_TASK
    async with trio.open_nursery() as nursery:
        results: list[str] = []

        async def task() -> None:
            results.append(await go_on(standing))

        nursery.start_soon(task)
        await trio.testing.wait_all_tasks_blocked()
        assert results == []
        event.set()
    assert results == ["result"]


async def test_what_is_raised_in_the_task_comes_through() -> None:
    async def work() -> None:
        await needs_task()
        await trio.lowlevel.checkpoint()
        raise KeyError("scripted")

    standing = work()
    step(standing)
    with pytest.raises(KeyError, match="scripted"):
        await go_on(standing)


@pytest.mark.parametrize("set_before", [False, True])
async def test_a_task_goes_on_with_what_waits_for_a_signal(set_before: bool) -> None:
    signal, overwritten = Signal(), []
    standing = wait_and_say(signal, "said")
    step(standing)
    signal.on_set = lambda: overwritten.append("told")  # as whoever stepped it has it
    results: list[object] = []

    async def task() -> None:
        results.append(await go_on(standing))

    if set_before:
        signal.set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        await trio.testing.wait_all_tasks_blocked()
        assert results == (["said"] if set_before else [])
        signal.set()
    assert results == ["said"]
    assert overwritten == (["told"] if set_before else []), "the task waits now, nobody else does"


async def test_in_a_task_a_signal_is_waited_for() -> None:
    signal, seen = Signal(), []

    async def wait() -> None:
        await signal.wait()
        seen.append("woken")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert seen == []
        signal.set()
        await trio.testing.wait_all_tasks_blocked()
        assert seen == ["woken"]


async def test_in_a_task_neither_waits_in_vain() -> None:
    signal = Signal()
    signal.set()
    with trio.testing.assert_no_checkpoints():
        await signal.wait()
        await needs_task()


def test_closing_what_stands_still_ends_it() -> None:
    ended = []

    async def inner(wait: Callable[[], Awaitable[None]]) -> None:
        try:
            await wait()
        finally:
            ended.append("inner")

    async def work(wait: Callable[[], Awaitable[None]]) -> None:
        try:
            await inner(wait)
        except GeneratorExit:
            ended.append("outer")
            raise

    for wait in (Signal().wait, needs_task):
        standing = work(wait)
        step(standing)
        assert ended == []
        standing.close()
        assert ended == ["inner", "outer"]
        ended.clear()


@pytest.mark.parametrize("wait", [trio.lowlevel.checkpoint, trio.sleep_forever, lambda: trio.Event().wait()])
async def test_what_waits_by_trios_means_is_told_of(wait: Callable[[], Awaitable[None]]) -> None:
    async def work() -> None:
        await wait()

    standing = work()
    with pytest.raises(RuntimeError, match="needs_task"):
        step(standing)
    standing.close()
    assert not stops()
    with trio.fail_after(5):  # the task that ran it is none the worse
        await trio.lowlevel.checkpoint()


def test_a_step_leaves_no_trace_however_it_ends() -> None:
    async def fail() -> None:
        raise KeyError("scripted")

    assert not stops()
    assert result(double(1)) == 2
    assert not stops()
    for standing in (needs_task(), Signal().wait()):
        step(standing)
        assert not stops()
        standing.close()
    with pytest.raises(KeyError):
        step(fail())
    assert not stops()


def test_another_thread_does_not_step() -> None:
    seen: list[bool] = []

    async def work() -> None:
        thread = threading.Thread(target=lambda: seen.append(stops()), daemon=True)
        thread.start()
        thread.join(10)
        seen.append(stops())

    result(work())
    assert seen == [False, True]


def test_a_task_of_another_thread_waits_by_trios_means_meanwhile() -> None:
    signal, seen = Signal(), []

    async def waiting() -> None:
        await needs_task()
        with trio.move_on_after(0.001):
            await signal.wait()
        seen.append("the time was up")

    async def work() -> None:
        thread = threading.Thread(target=trio.run, args=(waiting,), daemon=True)
        thread.start()
        thread.join(10)

    result(work())
    assert seen == ["the time was up"]


@pytest.mark.parametrize("wait", [lambda: Signal().wait(), trio.sleep_forever])
async def test_the_tasks_cancellation_reaches_what_it_goes_on_with(wait: Callable[[], Awaitable[None]]) -> None:
    seen = []

    async def work() -> None:
        try:
            await needs_task()
            await wait()
        except trio.Cancelled:
            seen.append("cancelled")
            raise
        finally:
            seen.append("ended")

    standing = work()
    step(standing)

    async def task() -> None:
        await go_on(standing)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        await trio.testing.wait_all_tasks_blocked()
        assert seen == []
        nursery.cancel_scope.cancel()
    assert seen == ["cancelled", "ended"]


async def test_a_signal_is_set_for_nobody_when_its_task_was_cancelled() -> None:
    signal = Signal()
    with trio.move_on_after(0):
        await signal.wait()
    signal.set()
    with trio.testing.assert_no_checkpoints():
        await signal.wait()


def test_without_a_task_what_is_shielded_stops_as_it_would_and_enters_no_scope() -> None:
    """A cancel scope can be entered by tasks alone."""
    signal = Signal()

    async def work() -> object:
        await give_way()
        return await wait_and_say(signal, "said")

    standing = shielded(work())
    assert step(standing) is GIVES_WAY
    assert step(standing) is signal
    signal.set()
    assert result(standing) == "said"


async def test_what_is_shielded_and_waits_without_a_task_is_told_of_and_taken_back() -> None:
    event = trio.Event()
    standing = shielded(event.wait())
    with pytest.raises(RuntimeError, match="needs_task"):
        step(standing)
    assert event.statistics().tasks_waiting == 0


def test_what_is_shielded_is_closed_with_what_awaits_it() -> None:
    closed = []

    async def work() -> None:
        try:
            await needs_task()
        finally:
            closed.append("closed")

    standing = shielded(work())
    assert step(standing) is NEEDS_TASK
    standing.close()
    assert closed == ["closed"]


@pytest.mark.parametrize("begun", [False, True])
async def test_what_is_shielded_is_done_to_its_end_though_its_task_is_cancelled(begun: bool) -> None:
    event, done = trio.Event(), []

    async def work() -> None:
        await needs_task()
        await event.wait()
        done.append("all")

    async def task() -> None:
        standing = shielded(work())
        if begun:
            step(standing)
        await go_on(standing)
        await trio.lowlevel.checkpoint()
        done.append("more")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        await trio.lowlevel.cancel_shielded_checkpoint()
        event.set()
    assert done == ["all"]
