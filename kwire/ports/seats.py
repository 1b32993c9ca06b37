"""Where streams wait for something to read, or are called when it comes: what they may count on, and a seat alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio


class Called(Protocol):
    """A stream that is called instead of being woken. None of its calls may raise, or wait."""

    def ready(self) -> None:
        """There may be something to read, or room to send (`Caller.watch_room`)."""

    def resumed(self) -> None:
        """`Caller.call_soon` or `call_later` asked for it."""

    def push(self) -> None:
        """`Caller.push_soon` asked for it."""


class Seat(Protocol):
    """Where one stream waits, or is called."""

    joined: bool
    """Whether it waits together with others, some of which are probably served in the same pass."""
    promising: bool
    """Whether to try and receive before waiting: there is something, or there may be, and a wait costs more. Set to
    False by who tries in vain."""

    async def wait(self, *, patient: bool) -> None:
        """Returns when there may be something to read and, if patient, the stream's turn has come.

        Raises trio.ClosedResourceError where `leave` came before or comes meanwhile.
        """

    def received(self, *, all_of_it: bool) -> None:
        """Something was received, or the end: all that was there if it was less than what was asked for (but for urgent
        data, which no Kafka client sends: what is behind them is told of with what comes next)."""

    def caller(self, stream: Called) -> Caller | None:
        """Who calls the stream from now on; None where it has to wait.

        Raises trio.ClosedResourceError where `leave` came before.
        """

    def leave(self) -> None:
        """The socket is about to be closed."""


class Caller(Protocol):
    """Calls a stream."""

    promising: bool
    """As of a seat: to be set to `ended` by who received all that was there."""
    ended: bool
    """Whether the other side sends no more."""

    async def until_let_go(self) -> None:
        """Returns after `let_go`. Raises trio.ClosedResourceError where `Seat.leave` comes meanwhile. Once it has
        returned or raised, the stream is not called any more."""

    def let_go(self) -> None:
        """The stream is not to be called any more."""

    def look_again(self) -> None:
        """Has `ready` called when others had their turn: there may be more."""

    def watch_room(self, wanted: bool) -> None:
        """Has `ready` called as soon as there is room to send, whatever comes meanwhile; or for what comes, again."""

    def call_soon(self) -> None:
        """Has `resumed` called when what is under way is done."""

    def call_later(self) -> None:
        """Likewise, when others had their turn: those for whom something has come by then, and tasks."""

    @property
    def push_soon(self) -> Callable[[Called], None]:
        """Has `push` of that stream called when what was received by others, too, is handled."""


class Alone:
    """A seat without a crowd: Trio's own wait."""

    __slots__ = ("_descriptor", "joined", "promising")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.joined = False
        self.promising = True

    async def wait(self, *, patient: bool) -> None:
        if self._descriptor < 0:
            raise trio.ClosedResourceError("the socket was closed")
        self.promising = True
        await trio.lowlevel.wait_readable(self._descriptor)

    def received(self, *, all_of_it: bool) -> None:
        pass

    def caller(self, stream: Called) -> Caller | None:
        return None

    def leave(self) -> None:
        trio.lowlevel.notify_closing(self._descriptor)
        self._descriptor = -1
