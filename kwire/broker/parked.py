"""A response that is not there yet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.broker.dispatch import Call, Parts
    from kwire.protocol.schema import Message


class Parked(ABC):
    """What a handler returns instead of a response when it has done all it can now and must wait.

    The connection sends what it already owes its client and then awaits `response()`.
    """

    pipelined: bool = False
    """Whether the connection's next request may start meanwhile (a Produce whose append is done)."""
    at_once: bool = False
    """Whether `response` may run without a task, as handlers of the APIs that the registry says so of."""

    @abstractmethod
    async def response(self) -> Message | Parts:
        """Waits and returns the response message, or the answer as it is sent. May be cancelled (the connection died,
        the broker stops)."""

    @abstractmethod
    def hurry(self) -> None:
        """Makes `response` return soon with what there is: the broker is stopping."""

    def let_go_of_data(self, request: Any) -> None:
        """The request waits beside others of its connection, and must not keep what is done with in its frame."""
        del request

    def abandon(self) -> None:
        """Nobody will ask for `response`: the connection is gone."""
        self.hurry()


class Waiting(Parked):
    """A request that was known from an earlier one, was begun, and has to wait for more to be there."""

    call: Call
