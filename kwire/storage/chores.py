"""What the storage does beside the requests: fsync after a roll, files that are removed after a delay, early writing.

A chore is due at a time; mostly it is a function for a worker thread. One task (`run`) starts the chores; one that
fails with an OSError takes its log dir offline, as any failing access does.

What removes files runs one at a time in a log dir: the system is busy for long with large ones, and several at once
would keep the processors from the event loop, and all other chores from their places.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple

import trio

from kwire.ports.clock import Clock
from kwire.ports.executor import Executor
from kwire.storage.log_dir import LogDir

logger = logging.getLogger(__name__)

_PARALLEL = 4
"""Chores under way at once: enough to keep a disk busy, few enough to leave worker threads to the reads."""


class _Chore(NamedTuple):
    due: float
    number: int
    log_dir: LogDir
    task: Callable[[], Awaitable[None]]
    makes_room: bool = False
    removes: bool = False


class Chores:
    """Chores in the order in which they are due."""

    def __init__(self, executor: Executor, clock: Clock) -> None:
        self._executor = executor
        self._clock = clock
        self._queue: list[_Chore] = []
        self._removals: dict[LogDir, deque[_Chore]] = {}
        """Of the log dirs in which a removal is under way: those that are due behind it."""
        self._numbers = count()
        self._changed = trio.Event()

    def later(
        self,
        delay_ms: int,
        log_dir: LogDir,
        work: Callable[[], None],
        done: Callable[[], None] | None = None,
        *,
        holding: trio.Lock | None = None,
        removes: bool = False,
        makes_room: bool = False,
    ) -> None:
        """`work` will be run in a worker thread `delay_ms` from now, and then `done` on the event loop.

        `holding`: a lock that is held meanwhile. `removes`: it removes files, behind those that are due before it.
        `makes_room`: it may be done earlier, where that is needed.
        """

        async def task() -> None:
            async with holding or nullcontext():
                await self._executor.run(work)
            if done is not None:
                done()

        due = self._clock.monotonic() + delay_ms / 1000
        self._put(_Chore(due, next(self._numbers), log_dir, task, makes_room, removes))

    def soon(self, log_dir: LogDir, task: Callable[[], Awaitable[None]]) -> None:
        """`task` will be awaited on the event loop."""
        self._put(_Chore(self._clock.monotonic(), next(self._numbers), log_dir, task))

    def _put(self, chore: _Chore) -> None:
        heappush(self._queue, chore)
        if self._queue[0] is chore:
            self._changed.set()

    async def run(self) -> None:
        """Runs chores as they become due, until cancelled; one that has begun is finished, the others stay."""
        places = trio.Semaphore(_PARALLEL)
        async with trio.open_nursery() as nursery:
            while True:
                await places.acquire()
                # Nothing is awaited between the look and the taking: `make_room` may take the same one.
                while (wait := self._until_due()) > 0:
                    self._changed = trio.Event()
                    with trio.move_on_after(wait):
                        await self._changed.wait()
                chore = heappop(self._queue)
                if chore.removes:
                    if chore.log_dir in self._removals:
                        self._removals[chore.log_dir].append(chore)
                        places.release()
                        continue
                    self._removals[chore.log_dir] = deque()
                nursery.start_soon(self._run_one, places, chore)

    def _until_due(self) -> float:
        """Seconds until the next chore is due."""
        return self._queue[0].due - self._clock.monotonic() if self._queue else float("inf")

    async def finish_due(self) -> None:
        """Runs what is due now."""
        while self._queue and self._queue[0].due <= self._clock.monotonic():
            await self._do(heappop(self._queue))

    async def make_room(self, log_dir: LogDir) -> None:
        """Does at once what makes room in that dir."""
        while chore := self._take_what_makes_room(log_dir):
            await self._do_or_keep(chore)

    def _take_what_makes_room(self, log_dir: LogDir) -> _Chore | None:
        for chores in self._queue, self._removals.get(log_dir, deque()):
            for chore in chores:
                if chore.makes_room and chore.log_dir is log_dir:
                    chores.remove(chore)
                    heapify(self._queue)
                    return chore
        return None

    async def _run_one(self, places: trio.Semaphore, chore: _Chore) -> None:
        try:
            await self._do_or_keep(chore)
            if chore.removes:
                behind = self._removals[chore.log_dir]
                while behind:
                    await self._do_or_keep(behind.popleft())
        finally:
            if chore.removes:
                for left in self._removals.pop(chore.log_dir):
                    heappush(self._queue, left)
            places.release()

    async def _do_or_keep(self, chore: _Chore) -> None:
        try:
            await self._do(chore)
        except trio.Cancelled:  # before its work began
            heappush(self._queue, chore)
            self._changed.set()
            raise

    async def _do(self, chore: _Chore) -> None:
        if not chore.log_dir.online:
            return
        try:
            await chore.task()
        except OSError as error:
            chore.log_dir.fail("background work failed", error)
        except Exception:
            logger.exception("background work in %s failed", chore.log_dir.path)
