"""Receiving without a task: a stream calls its receiver with what comes (`Stream.attend`).

A stream of which nothing else is known is attended by the task that awaits `Attendance.run`; one that is told of what
comes by others (`crowd.py`) needs none.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from kwire.ports.transport import Stream


class Next(Enum):
    """What a receiver wants of its stream."""

    READ = "read"
    """More, as soon as it comes."""
    WAIT = "wait"
    """Nothing, until `Stream.resume` is called."""
    LEAVE = "leave"
    """Its task: `attend` returns."""


class Receiver(Protocol):
    """Who is called with what a stream receives. The calls must not raise, and cannot wait."""

    wanted: int
    """So many bytes at most are to come at once."""
    room: memoryview | None
    """Where they are to be put instead, up to its end whatever is `wanted`; `filled` is called then."""
    needed: int
    """Less than so many bytes are of no use to the receiver: the stream may keep them to itself until there are so
    many, or no more can come. Not more than are to come at once."""

    def received(self, data: bytes) -> Next:
        """What has arrived, at least one byte; b"" at the end of the stream, after which it has to LEAVE."""

    def filled(self, size: int) -> Next:
        """So many bytes have arrived and were put into `room`; 0 at the end of the stream."""

    def resumed(self) -> Next:
        """`Stream.resume` was called, perhaps for something that is over by now."""


class Attendance:
    """Attending a stream in the task that awaits `run`."""

    __slots__ = ("_failure", "_resumed", "sending")

    def __init__(self) -> None:
        self._resumed = trio.Event()
        self._failure: Exception | None = None
        self.sending = False
        """Whether it sends what the receiver said."""

    def resume(self) -> None:
        """As `Stream.resume`, though who reads just now is called only when something has come."""
        self._resumed.set()

    def end(self, failure: Exception) -> None:
        """The stream was closed: `run` raises this where the receiver wants nothing of it."""
        self._failure = failure
        self._resumed.set()

    async def run(self, stream: Stream, receiver: Receiver) -> None:
        """As `Stream.attend`, and all that the receiver says is sent before it is called again."""
        wanted = Next.READ
        while wanted is not Next.LEAVE:
            if stream.unsent:  # what is left to the task may not wait for the other side
                self.sending = True
                await stream.send([])
                self.sending = False
            if wanted is Next.READ and not self._resumed.is_set():
                room = receiver.room
                data = await stream.receive(receiver.wanted if room is None else len(room))
                if room is None:
                    wanted = receiver.received(data)
                else:
                    room[: len(data)] = data
                    wanted = receiver.filled(len(data))
                del data, room  # the one that it waits with would be in use meanwhile
            else:
                await self._resumed.wait()
                self._resumed = trio.Event()
                if self._failure is not None:
                    raise self._failure
                wanted = receiver.resumed()
