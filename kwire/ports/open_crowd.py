"""The one crowd of an event loop: who opens it first has it made, who leaves it last has it closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import trio

from kwire.ports.crowd import Crowd
from kwire.ports.seats import Alone, Seat
from kwire.ports.trio_loop import trio_loop


class _Opened(trio.abc.Instrument):
    """A crowd, as Trio tells it when it is about to wait."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.users = 0
        self.before_io_wait = crowd.before_io_wait  # type: ignore[method-assign]  # one call less than a method would be


_opened: trio.lowlevel.RunVar[_Opened | None] = trio.lowlevel.RunVar("kwire.ports.open_crowd", None)


def _open() -> _Opened | None:
    opened, loop = _opened.get(), trio_loop()
    if opened is None and loop is not None:
        with suppress(OSError):  # the system has no room for one more epoll
            opened = _Opened(Crowd(loop))
            _opened.set(opened)
            trio.lowlevel.add_instrument(opened)
    return opened


@asynccontextmanager
async def open_crowd() -> AsyncIterator[Callable[[int], Seat]]:
    """Gives seats in the one crowd of this event loop; where there can be none, seats of their own."""
    opened = _open()
    if opened is None:
        yield Alone
        return
    opened.users += 1
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.crowd.until_failed)
            yield opened.crowd.seat
            nursery.cancel_scope.cancel()
    finally:
        opened.users -= 1
        if not opened.users:
            _opened.set(None)
            trio.lowlevel.remove_instrument(opened)
            opened.crowd.close()
