"""What the tests of streams share: content, reading, files to send slices of, and who is called with what comes."""

from __future__ import annotations

import os
import socket
import struct
from array import array
from collections.abc import Callable, Sequence
from typing import cast

import trio

from kwire.ports.attending import Next
from kwire.ports.tcp_stream import TcpStream
from kwire.ports.transport import Part, Stream

LARGE = 8 * 1024 * 1024
"""More bytes than a connection holds on their way."""


class PlainFile:
    """A file of the operating system, just enough of one to send slices of; without a descriptor it must be read."""

    def __init__(self, path: str, descriptor: int, *, sendable: bool) -> None:
        self.path = path
        self.descriptor = descriptor
        self.sendable = sendable

    def pread(self, size: int, position: int) -> bytes:
        return os.pread(self.descriptor, size, position)

    def fileno(self) -> int | None:
        return self.descriptor if self.sendable else None

    def resident(self, position: int, size: int) -> bool:
        return True


class Notes:
    """A receiver that notes what it hears, sends what `answers` says, and asks for what `asks` says: READ by default.

    The end of the stream it leaves.
    """

    def __init__(self, stream: Stream, *, wanted: int = 1000) -> None:
        self.stream = stream
        self.wanted = wanted
        self.room: memoryview | None = None
        """Used up by what is put there."""
        self.heard: list[bytes] = []
        self.resumes = 0
        self.asks = Next.READ
        self.answers: Callable[[bytes], Sequence[Part]] = lambda data: ()
        """To what comes; to b"" where it is resumed."""

    @property
    def needed(self) -> int:
        return 1 if self.room is None else len(self.room)

    @property
    def content(self) -> bytes:
        return b"".join(self.heard)

    @property
    def ended(self) -> bool:
        return self.heard[-1:] == [b""]

    def received(self, data: bytes) -> Next:
        self.heard.append(data)
        if not data:
            return Next.LEAVE
        return self._answer(data)

    def filled(self, size: int) -> Next:
        assert self.room is not None
        data, self.room = bytes(self.room[:size]), self.room[size:] or None
        return self.received(data)

    def resumed(self) -> Next:
        self.resumes += 1
        return self._answer(b"")

    def _answer(self, data: bytes) -> Next:
        parts = self.answers(data)
        if parts:
            self.stream.send_soon(parts)
        return self.asks


def pattern(size: int) -> bytes:
    """Bytes in which a displaced piece shows."""
    return array("I", range(size // 4 + 1)).tobytes()[:size]


async def read_exactly(stream: Stream, size: int) -> bytes:
    pieces = []
    while size:
        piece = await stream.receive(min(size, 65536))
        assert piece, "the stream ended early"
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


async def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Returns when the condition holds."""
    with trio.fail_after(seconds):
        while not condition():
            await trio.lowlevel.checkpoint()


class Server:
    """A server whose streams the test attends as it likes, and clients that send and receive without waiting."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.accepted: list[TcpStream] = []
        self.clients: list[socket.socket] = []

    async def keep(self, stream: Stream) -> None:
        self.accepted.append(cast(TcpStream, stream))
        await trio.sleep_forever()

    async def connect(self) -> tuple[TcpStream, socket.socket]:
        """(the server's end, the client's)"""
        client = socket.create_connection(("127.0.0.1", self.port))
        self.clients.append(client)
        await until(lambda: len(self.accepted) == len(self.clients))
        return self.accepted[-1], client


def reset(sock: socket.socket) -> None:
    """The other side is told that this one is gone, and what is on its way is lost."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def echoing(stream: Stream) -> Notes:
    notes = Notes(stream)
    notes.answers = lambda data: [data]
    return notes


async def has_come(client: socket.socket, size: int) -> bytes:
    """Without keeping anybody from sending it."""
    data = b""
    with trio.fail_after(10):
        while len(data) < size:
            await trio.lowlevel.checkpoint()
            try:
                received = client.recv(size - len(data), socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            assert received, "the stream ended early"
            data += received
    return data


class Passes(trio.abc.Instrument):
    """Counts those of the event loop, and looks at something after each."""

    def __init__(self, look: Callable[[], object] = lambda: None) -> None:
        self.number = 0
        self.seen: list[object] = []
        self._look = look

    def before_io_wait(self, timeout: float) -> None:
        self.number += 1
        self.seen.append(self._look())
