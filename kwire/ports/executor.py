"""Worker threads, for what would stall the event loop: fsync, deletes, index rebuilds, cold reads, large walks and
requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import trio

from kwire.ports.at_once import needs_task

T = TypeVar("T")


class Executor(Protocol):
    """Runs a blocking function away from the event loop and returns (or raises) what it does."""

    async def run(self, function: Callable[..., T], *arguments: object) -> T: ...

    def resize(self, threads: int) -> None:
        """At most so many at once from now on; what runs is let run."""


class ThreadExecutor:
    """Trio's worker threads, at most `threads` of them at once. A started call is never abandoned."""

    def __init__(self, threads: int) -> None:
        self._limiter = trio.CapacityLimiter(threads)

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        await needs_task()
        return await trio.to_thread.run_sync(function, *arguments, limiter=self._limiter)

    def resize(self, threads: int) -> None:
        self._limiter.total_tokens = threads


class InlineExecutor:
    """Runs at once, in the caller: for simulation, where an order of events must come from the seed alone."""

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        await needs_task()
        await trio.lowlevel.checkpoint()
        return function(*arguments)

    def resize(self, threads: int) -> None:
        pass
