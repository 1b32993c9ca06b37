"""The network: listeners and byte streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from kwire.ports.attending import Receiver
from kwire.ports.files import Buffer, FileSlice


class StreamClosed(Exception):
    """The peer is gone (reset, broken pipe) or this side was closed while in use."""


class Streamed(Protocol):
    """A part of a message that comes while it is sent: its size is known before its bytes are."""

    def __len__(self) -> int: ...

    async def read_from(self, start: int) -> Buffer:
        """From byte `start` on, at least one. Raises StreamClosed where they don't come: the message is cut short."""


Part = Buffer | FileSlice | Streamed


class Stream(Protocol):
    """A connected byte stream. One task reads, one writes. StreamClosed is the only failure."""

    peer_host: str
    peer_port: int
    held_up: bool
    """Whether what a receiver has sent soon waits for room, while it is attended."""

    @property
    def sent(self) -> int:
        """Bytes that went out so far; grows during a send too, which tells a slow peer from one that takes nothing."""

    @property
    def arrived(self) -> int:
        """How many bytes have come that the receiver was not told of, since it needs more; 0 where it is told of all
        that comes."""

    patient: bool
    """Whether `receive` may wait its turn while many others that are patient have something to read too."""

    async def receive(self, max_bytes: int) -> bytes:
        """What has arrived, at least one byte, up to max_bytes; b"" at the end of the stream."""

    async def send(self, parts: Sequence[Part]) -> None:
        """Sends all parts in order; file slices go out by sendfile where the stream can.

        Need not be a checkpoint: it waits only if it has to.
        """

    async def attend(self, receiver: Receiver) -> None:
        """Calls the receiver with what arrives, until it wants to be left: all that its calls do is done at once, where
        the stream can do so without waking the task that awaits this. May also return when something is `unsent`."""

    def resume(self) -> None:
        """Has the receiver that is attended called soon (`resumed`); nothing else happens if there is none."""

    def resume_later(self) -> None:
        """Likewise, when others have had their turn."""

    def send_soon(self, parts: Sequence[Part]) -> None:
        """For a receiver, in its calls: sends all parts in order, after what is due now. What can't be sent without
        waiting stays `unsent`."""

    @property
    def unsent(self) -> bool:
        """Whether something of `send_soon` is left, which the next `send` sends first, or is being sent."""

    def close(self) -> None:
        """Closes at once, both ways; wakes a task that waits in receive, attend or send with StreamClosed."""


class Listener(Protocol):
    host: str
    port: int
    """The real port, also where 0 was asked for."""

    async def serve(
        self, handler: Callable[[Stream], Awaitable[None]], room: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Accepts until cancelled; runs `handler` for each stream in a task of its own and closes it afterwards.

        `room`, where given, is awaited before each accept: it returns when one more stream may come.
        """

    def close(self) -> None: ...


class Transport(Protocol):
    async def listen(self, host: str, port: int, backlog: int = 50) -> Listener: ...

    async def addresses(self, host: str) -> list[str]:
        """What `Stream.peer_host` may be of a client at that host. Raises OSError where the name is unknown."""

    async def connect(self, host: str, port: int) -> Stream:
        """Raises OSError where nobody listens or the name is unknown."""
