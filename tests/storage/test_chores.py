from functools import partial

import pytest
import trio
import trio.testing

from kwire.ports.clock import TrioClock
from kwire.ports.executor import InlineExecutor
from kwire.ports.memory_files import MemoryFileSystem
from kwire.storage.chores import Chores
from kwire.storage.log_dir import LogDir


class ThreadlessExecutor:
    """What it runs takes `seconds`, and is finished once it has begun, as in a thread."""

    def __init__(self, seconds):
        self._seconds = seconds

    async def run(self, function, *arguments):
        await trio.lowlevel.checkpoint()
        with trio.CancelScope(shield=True):
            await trio.sleep(self._seconds)
        return function(*arguments)


async def test_chores_run_when_they_are_due(autojump_clock):
    clock = TrioClock()
    chores = Chores(InlineExecutor(), clock)
    log_dir = LogDir(MemoryFileSystem(), "/d")
    done = []

    def note(name):
        return lambda: done.append((name, trio.current_time() - start))

    async with trio.open_nursery() as nursery:
        start = trio.current_time()
        nursery.start_soon(chores.run)
        chores.later(60_000, log_dir, note("late"))
        await trio.sleep(1)
        chores.later(2_000, log_dir, note("early"))
        chores.later(0, log_dir, note("now"))
        await trio.sleep(1)
        assert done == [("now", 1.0)]
        await trio.sleep(3)
        assert done == [("now", 1.0), ("early", 3.0)]
        await trio.sleep(60)
        assert done == [("now", 1.0), ("early", 3.0), ("late", 60.0)]
        nursery.cancel_scope.cancel()


async def test_a_chore_that_had_not_begun_when_they_end_is_left(autojump_clock):
    chores = Chores(InlineExecutor(), TrioClock())
    log_dir = LogDir(MemoryFileSystem(), "/d")
    done = []
    chores.later(0, log_dir, lambda: done.append(1), holding=log_dir.writing)
    async with log_dir.writing, trio.open_nursery() as nursery:
        nursery.start_soon(chores.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert done == []
    await chores.finish_due()
    assert done == [1]


async def test_what_makes_room_is_done_earlier(autojump_clock):
    chores = Chores(InlineExecutor(), TrioClock())
    log_dir, other = LogDir(MemoryFileSystem(), "/d"), LogDir(MemoryFileSystem(), "/e")
    done = []
    for number in range(6):
        chores.later(100_000 - number, log_dir, partial(done.append, number), makes_room=number in (2, 5))
    chores.later(100_000, other, partial(done.append, "other"), makes_room=True)
    with trio.CancelScope() as scope:
        scope.cancel()
        await chores.make_room(log_dir)
    assert done == []
    await chores.make_room(log_dir)
    assert sorted(done) == [2, 5]
    await trio.sleep(100)
    await chores.finish_due()
    assert done[2:] == [4, 3, 1, 0, "other"]


@pytest.mark.parametrize("others", [0, 1])
async def test_what_makes_room_is_taken_while_it_waits_for_a_place(others, autojump_clock):
    """What is not due is not done in its stead, and nothing breaks where there is nothing else."""
    chores = Chores(InlineExecutor(), TrioClock())
    log_dir = LogDir(MemoryFileSystem(), "/d")
    done: list[str] = []
    gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(chores.run)
        for _ in range(4):
            chores.soon(log_dir, gate.wait)
        chores.later(1_000, log_dir, partial(done.append, "room"), makes_room=True)
        for _ in range(others):
            chores.later(60_000, log_dir, partial(done.append, "not due"))
        await trio.sleep(2)
        await chores.make_room(log_dir)
        assert done == ["room"]
        gate.set()
        await trio.sleep(2)
        assert done == ["room"]
        await trio.sleep(60)
        assert done[1:] == others * ["not due"]
        chores.later(0, log_dir, partial(done.append, "goes on"))
        await trio.sleep(1)
        assert done[-1] == "goes on"
        nursery.cancel_scope.cancel()


async def test_a_chore_that_breaks_does_not_end_the_others(autojump_clock):
    chores = Chores(InlineExecutor(), TrioClock())
    log_dir = LogDir(MemoryFileSystem(), "/d")
    done = []
    chores.later(0, log_dir, lambda: 1 // 0)
    chores.later(10, log_dir, lambda: done.append(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(chores.run)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert done == [1]
    assert log_dir.online


async def test_removals_of_a_dir_run_one_at_a_time_and_keep_nobody_waiting(autojump_clock):
    chores = Chores(ThreadlessExecutor(seconds=10), TrioClock())
    log_dir, other = LogDir(MemoryFileSystem(), "/d"), LogDir(MemoryFileSystem(), "/e")
    done = []

    def note(name):
        return lambda: done.append((name, trio.current_time() - start))

    async with trio.open_nursery() as nursery:
        start = trio.current_time()
        nursery.start_soon(chores.run)
        for number in range(6):
            chores.later(number, log_dir, note(number), removes=True)
        chores.later(100, other, note("other"), removes=True)
        chores.later(1_000, log_dir, note("no removal"))
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    assert done == [
        (0, 10.0),
        ("other", 10.1),
        ("no removal", 11.0),
        *((number, 10.0 + 10 * number) for number in range(1, 6)),
    ]


async def test_removals_that_wait_for_another_make_room_and_are_left_at_the_end(autojump_clock):
    chores = Chores(ThreadlessExecutor(seconds=10), TrioClock())
    log_dir = LogDir(MemoryFileSystem(), "/d")
    done = []
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(chores.run)
        for number in range(4):
            chores.later(0, log_dir, partial(done.append, number), removes=True, makes_room=number in (1, 3))
        await trio.sleep(1)
        await chores.make_room(log_dir)
        assert (done, trio.current_time() - start) == ([0, 1, 2, 3], 21.0)  # 1 and then 3 beside the others
        nursery.cancel_scope.cancel()
    for number in range(4, 7):
        chores.later(0, log_dir, partial(done.append, number), removes=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(chores.run)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert done[4:] == [4]
    await chores.finish_due()
    assert done[4:] == [4, 5, 6]
