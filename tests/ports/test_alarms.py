"""Alarms ring when it is time, in their order, and not when they were taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from kwire.ports import alarms
from kwire.ports.alarms import Alarms
from kwire.ports.clock import SystemClock, TrioClock


@asynccontextmanager
async def running() -> AsyncIterator[Alarms]:
    ringing = Alarms(TrioClock())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ringing.run)
        yield ringing
        nursery.cancel_scope.cancel()


async def test_they_ring_in_the_order_of_their_times(autojump_clock: trio.testing.MockClock) -> None:
    rung = []
    async with running() as ringing:
        began = trio.current_time()
        for seconds in (3.0, 1.0, 2.0, 1.0):
            await trio.testing.wait_all_tasks_blocked()  # the one that sleeps has to be woken for an earlier one
            ringing.at(began + seconds, lambda: rung.append(trio.current_time() - began))
        await trio.sleep(0.9)
        assert rung == []
        await trio.sleep(10)
    assert rung == pytest.approx([1.0, 1.0, 2.0, 3.0])
    assert ringing.pending == 0


async def test_what_was_taken_back_does_not_ring(autojump_clock: trio.testing.MockClock) -> None:
    rung = []
    async with running() as ringing:
        kept = ringing.at(trio.current_time() + 2, lambda: rung.append("kept"))
        ringing.at(trio.current_time() + 1, lambda: rung.append("taken back")).cancel()
        await trio.sleep(5)
        kept.cancel()  # too late, and harmless
        assert not kept.is_set
    assert rung == ["kept"]
    assert ringing.pending == 0


async def test_one_that_is_due_already_rings_soon(autojump_clock: trio.testing.MockClock) -> None:
    rung = trio.Event()
    async with running() as ringing:
        await trio.testing.wait_all_tasks_blocked()
        ringing.at(trio.current_time() - 1, rung.set)
        with trio.fail_after(0.1):
            await rung.wait()


async def test_one_may_be_set_by_another_that_rings(autojump_clock: trio.testing.MockClock) -> None:
    rung = trio.Event()
    async with running() as ringing:
        now = trio.current_time()
        ringing.at(now + 1, lambda: ringing.at(now + 2, rung.set) and None)
        with trio.fail_after(2.5):
            await rung.wait()


async def test_on_the_clock_of_the_machine() -> None:
    clock, rung = SystemClock(), trio.Event()
    ringing = Alarms(clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ringing.run)
        deadline = clock.monotonic() + 0.02
        ringing.at(deadline, rung.set)
        with trio.fail_after(10):
            await rung.wait()
        assert clock.monotonic() >= deadline
        nursery.cancel_scope.cancel()


def test_what_was_taken_back_is_cleared_away() -> None:
    """A timeout of a minute, thousands of times a second, must not fill the memory for a minute."""
    ringing = Alarms(SystemClock())
    kept = [ringing.at(1e12 + number, lambda: None) for number in range(10)]
    for number in range(10_000):
        ringing.at(2e12 - number, lambda: None).cancel()
    assert ringing.pending == len(kept)
    assert len(ringing._heap) <= 2 * len(kept) + alarms._KEPT + 1
    assert all(alarm.is_set for alarm in kept)
