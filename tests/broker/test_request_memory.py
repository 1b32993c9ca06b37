"""Room for requests (`queued.max.request.bytes`): it is waited for, and nobody waits in vain."""

from __future__ import annotations

import trio

from kwire.broker.request_memory import RequestMemory


async def test_the_last_one_may_go_over_the_bound_and_the_next_one_waits(autojump_clock) -> None:
    memory = RequestMemory(100)
    await memory.take(99)
    await memory.take(1000)
    with trio.move_on_after(1) as waited:
        await memory.take(1)
    assert waited.cancelled_caught


async def test_all_who_wait_go_on_when_there_is_room(autojump_clock) -> None:
    memory = RequestMemory(100)
    await memory.take(100)
    with trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(memory.take, 10)
            await trio.testing.wait_all_tasks_blocked()
            memory.give_back(100)


async def test_who_finds_the_room_taken_by_another_waits_on(autojump_clock) -> None:
    memory = RequestMemory(100)
    await memory.take(100)
    with trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(memory.take, 100)
            for _ in range(3):
                await trio.testing.wait_all_tasks_blocked()
                memory.give_back(100)
