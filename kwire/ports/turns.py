"""Turns: who has many things to do one after the other lets the other tasks run in between.

A server with one event loop has no other way to keep one large request from holding up all connections.
"""

from __future__ import annotations

from kwire.ports.at_once import give_way
from kwire.ports.clock import Clock

TURN_SECONDS = 0.002
"""How long a task may have the event loop before it offers it to others: little beside what a client waits anyway."""


class Turn:
    """One task's time on the event loop, since it was made or last shared.

    turn = Turn(broker.clock)
    for topic in request.topics:
        ...
        await turn.share()
    """

    __slots__ = ("_clock", "_ends")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends = clock.monotonic() + TURN_SECONDS

    @property
    def over(self) -> bool:
        """Whether this one has had its time."""
        return self._clock.monotonic() >= self._ends

    async def share(self) -> None:
        """Lets other tasks run if this one has had its time; else returns at once, and costs next to nothing."""
        if self.over:
            await give_way()
            self._ends = self._clock.monotonic() + TURN_SECONDS
