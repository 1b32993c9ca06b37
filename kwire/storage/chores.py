"""What the storage does beside the requests: fsync after a roll, files that are removed after a delay, early writing.

A chore is due at a time; mostly it is a function for a worker thread. One task (`run`) starts the chores; one that
fails with an OSError takes its log dir offline, as any failing access does.
"""

from __future__ import annotations

import logging
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


class Chores:
    """Chores in the order in which they are due."""

    def __init__(self, executor: Executor, clock: Clock) -> None:
        self._executor = executor
        self._clock = clock
        self._queue: list[_Chore] = []
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
        makes_room: bool = False,
    ) -> None:
        """`work` will be run in a worker thread `delay_ms` from now, and then `done` on the event loop.

        `holding`: a lock that is held meanwhile. `makes_room`: it may be done earlier, where that is needed.
        """

        async def task() -> None:
            async with holding or nullcontext():
                await self._executor.run(work)
            if done is not None:
                done()

        self._put(delay_ms, log_dir, task, makes_room=makes_room)

    def soon(self, log_dir: LogDir, task: Callable[[], Awaitable[None]]) -> None:
        """`task` will be awaited on the event loop."""
        self._put(0, log_dir, task)

    def _put(
        self, delay_ms: int, log_dir: LogDir, task: Callable[[], Awaitable[None]], *, makes_room: bool = False
    ) -> None:
        due = self._clock.monotonic() + delay_ms / 1000
        chore = _Chore(due, next(self._numbers), log_dir, task, makes_room)
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
                nursery.start_soon(self._run_one, places, heappop(self._queue))

    def _until_due(self) -> float:
        """Seconds until the next chore is due."""
        return self._queue[0].due - self._clock.monotonic() if self._queue else float("inf")

    async def finish_due(self) -> None:
        """Runs what is due now."""
        while self._queue and self._queue[0].due <= self._clock.monotonic():
            await self._do(heappop(self._queue))

    async def make_room(self, log_dir: LogDir) -> None:
        """Does at once what makes room in that dir."""
        while chore := next((chore for chore in self._queue if chore.makes_room and chore.log_dir is log_dir), None):
            self._queue.remove(chore)
            heapify(self._queue)
            await self._do_or_keep(chore)

    async def _run_one(self, places: trio.Semaphore, chore: _Chore) -> None:
        try:
            await self._do_or_keep(chore)
        finally:
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
