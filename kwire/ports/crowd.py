"""Sockets that can wait: where many have something to read at once, a few are woken in each pass of the event loop.

Trio wakes everybody who can read in the same pass, so that who comes behind a thousand others is served after all of
them. Here the kernel keeps the queue: an epoll of its own, which is asked for a few sockets in each pass, and tells
those that have waited longest first.
"""

from __future__ import annotations

import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import outcome
import trio

AT_ONCE = 16
"""So many are woken in one pass. A request of the kind that can wait takes about a tenth of a millisecond."""


class Crowd:
    """Wakes those who wait for their sockets, as long as `run` runs."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._tasks: dict[int, trio.lowlevel.Task] = {}

    async def wait_readable(self, descriptor: int) -> None:
        """Returns when the socket can be read and its turn has come.

        Raises trio.ClosedResourceError where `forget` comes first, ValueError where the descriptor is -1.
        """
        if descriptor < 0:
            raise ValueError("the socket is closed")
        mask = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLONESHOT
        try:
            self._epoll.modify(descriptor, mask)
        except FileNotFoundError:
            self._epoll.register(descriptor, mask)
        self._tasks[descriptor] = trio.lowlevel.current_task()

        def abort(_: object) -> trio.lowlevel.Abort:
            del self._tasks[descriptor]
            self._epoll.unregister(descriptor)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def forget(self, descriptor: int) -> None:
        """The socket is about to be closed."""
        task = self._tasks.pop(descriptor, None)
        if task is not None:
            self._epoll.unregister(descriptor)
            trio.lowlevel.reschedule(task, outcome.Error(trio.ClosedResourceError("the socket was closed")))

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for descriptor, _ in self._epoll.poll(0, AT_ONCE):
                task = self._tasks.pop(descriptor, None)
                if task is not None:
                    trio.lowlevel.reschedule(task)

    def close(self) -> None:
        """Nobody waits any more."""
        self._epoll.close()


@asynccontextmanager
async def open_crowd() -> AsyncIterator[Crowd | None]:
    """A crowd that runs; None where the system has no epoll."""
    if not hasattr(select, "epoll"):
        yield None
        return
    crowd = Crowd()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crowd.run)
            yield crowd
            nursery.cancel_scope.cancel()
    finally:
        crowd.close()
