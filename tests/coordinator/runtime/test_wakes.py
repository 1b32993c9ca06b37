"""Who waits for an answer is woken at once, unless many are woken in the same moment."""

from __future__ import annotations

import trio
import trio.testing

from kwire.coordinator.runtime.wakes import AT_ONCE, Wakes

MANY = 5 * AT_ONCE


def woken(events: list[trio.Event]) -> int:
    return sum(event.is_set() for event in events)


async def test_a_few_at_once(nursery: trio.Nursery) -> None:
    wakes, events = Wakes(), [trio.Event() for _ in range(AT_ONCE)]
    nursery.start_soon(wakes.run)
    await trio.testing.wait_all_tasks_blocked()
    for event in events:
        wakes.wake(event)
        assert event.is_set()


async def test_many_in_their_order_and_few_in_each_pass(
    nursery: trio.Nursery, mock_clock: trio.testing.MockClock
) -> None:
    wakes, events = Wakes(), [trio.Event() for _ in range(MANY)]
    nursery.start_soon(wakes.run)
    await trio.testing.wait_all_tasks_blocked()
    for event in events:  # the clock stands still, so all of this is one pass however slow the machine
        wakes.wake(event)
    passes = 1
    while (count := woken(events)) < MANY and passes < MANY:
        assert count <= passes * AT_ONCE
        assert all(event.is_set() for event in events[:count])
        await trio.lowlevel.checkpoint()
        passes += 1
    assert count == MANY
    assert passes > MANY // AT_ONCE / 2


async def test_nobody_overtakes_who_waits(nursery: trio.Nursery, autojump_clock: trio.testing.MockClock) -> None:
    wakes, events = Wakes(), [trio.Event() for _ in range(MANY)]
    nursery.start_soon(wakes.run)
    await trio.testing.wait_all_tasks_blocked()
    for event in events[:-1]:
        wakes.wake(event)
    autojump_clock.jump(1)  # a pass is over by the clock, though the event loop has not made one
    wakes.wake(events[-1])
    assert not events[-1].is_set()
    await trio.testing.wait_all_tasks_blocked()
    assert woken(events) == MANY


async def test_where_nobody_runs_it_all_are_woken_at_once() -> None:
    wakes, events = Wakes(), [trio.Event() for _ in range(MANY)]
    for event in events:
        wakes.wake(event)
    assert woken(events) == MANY


async def test_its_end_leaves_nobody_waiting() -> None:
    wakes, events = Wakes(), [trio.Event() for _ in range(MANY)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wakes.run)
        await trio.testing.wait_all_tasks_blocked()
        for event in events:
            wakes.wake(event)
        nursery.cancel_scope.cancel()
    assert woken(events) == MANY
