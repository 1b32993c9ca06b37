"""Retention of a log that is moved to another log dir."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
import trio

from kwire.storage import layout
from kwire.storage.log import Log
from kwire.storage.manager import LogManager
from tests.storage.house import House, broken
from tests.storage.support import append, read_all

from .movers import MANY_STEPS, ONE, TWO, a_log, moved, moving

T = TypeVar("T")


async def forty_records() -> tuple[House, LogManager, Log]:
    """In small segments, all of them below the high watermark."""
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed, segment_bytes=200)
    for number in range(40):
        await append(log, f"record {number}")
    log.set_high_watermark(40)
    return house, managed, log


async def begun_at_20() -> tuple[House, LogManager, Log]:
    """The same, of which the first half is to be deleted."""
    house, managed, log = await forty_records()
    log.advance_log_start(20)
    return house, managed, log


async def test_retention_meanwhile(autojump_clock) -> None:
    house, managed, log = await forty_records()
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        future = managed.moves.futures["t", 0]
        while future.end_offset < 30:
            await trio.lowlevel.checkpoint()
        log.advance_log_start(20)
        assert await log.delete_old_segments(house.clock.now)
        await moved(log, managed.dirs[1])
    assert read_all(log) == [(n, f"record {n}") for n in range(20, 40)]
    names = [name for name in house.files.list(log.dir) if name.endswith(layout.LOG)]
    assert names == [layout.segment_name(segment.base_offset, layout.LOG) for segment in log.segments]


class LateWorkers:
    """Worker threads that come to a sync of a log's folder when the log is not in it any more."""

    def __init__(self, log: Log, in_time: int = 0) -> None:
        """The first `in_time` syncs of it come before that."""
        self._log = log
        self._in_time = in_time
        self.came = trio.Event()
        """Set when one of them waits for that."""

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        folder = self._log.dir
        if arguments == (folder,):
            self._in_time -= 1
            if self._in_time < 0:
                self.came.set()
                for _ in range(MANY_STEPS):
                    if self._log.dir != folder:
                        break
                    await trio.lowlevel.checkpoint()
        return function(*arguments)


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_the_swap_comes_while_retention_waits_for_the_folder(after: int, autojump_clock) -> None:
    """The folder is gone then, which is no failure of either dir."""
    house, managed, log = await begun_at_20()
    beside = await a_log(managed, 1, managed.dirs[1])
    count = len(log.segments)
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        workers, managed.services.executor = managed.services.executor, LateWorkers(log, after)
        assert await log.delete_old_segments(house.clock.now) == after
        managed.services.executor = workers
        assert len(log.segments) == count - after
        await moved(log, managed.dirs[1])
    assert [log_dir.online for log_dir in managed.dirs] == [True, True]
    assert await append(beside, "goes on") == 0
    assert await log.delete_old_segments(house.clock.now)
    assert log.segments.first.base_offset == 20
    assert read_all(log) == [(n, f"record {n}") for n in range(20, 40)]


async def test_the_new_folder_gets_its_name_while_retention_waits_for_it(autojump_clock) -> None:
    house, managed, log = await begun_at_20()
    late = LateWorkers(log)

    class UntilThen:
        """The sync of the dir that the log left takes until retention waits for the new folder."""

        async def run(self, function: Callable[..., T], *arguments: object) -> T:
            if arguments == (ONE,):
                await late.came.wait()
            return function(*arguments)

    async with moving(managed):
        workers, managed.services.executor = managed.services.executor, UntilThen()
        await managed.moves.move(log, managed.dirs[1])
        await moved(log, managed.dirs[1])
        assert log.dir.endswith(layout.FUTURE_DIR)
        managed.services.executor = late
        assert await log.delete_old_segments(house.clock.now) == 0
        assert log.dir == f"{TWO}/t-0"
        managed.services.executor = workers
    assert [log_dir.online for log_dir in managed.dirs] == [True, True]
    assert await log.delete_old_segments(house.clock.now)
    assert read_all(log) == [(n, f"record {n}") for n in range(20, 40)]


async def test_retention_fails_in_the_dir_that_the_log_has_left(autojump_clock) -> None:
    house, managed, log = await begun_at_20()
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        workers, managed.services.executor = managed.services.executor, LateWorkers(log)
        house.files.fault = broken(f"{ONE}/t-0", "sync")
        await log.delete_old_segments(house.clock.now)
        managed.services.executor = workers
        assert [log_dir.online for log_dir in managed.dirs] == [False, True]
        assert await log.delete_old_segments(house.clock.now)
    assert read_all(log) == [(n, f"record {n}") for n in range(20, 40)]
