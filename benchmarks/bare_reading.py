"""`python -m benchmarks.bare_reading trio|crowd FILES`: what can be done at most with a large Fetch.

A server on a free port of 127.0.0.1, which it prints. It reads frames, looks at nothing but their sizes, and answers
each with a MiB of each of so many files, by sendfile, with as many bytes before each as an answer has. It does so by
Trio's own means, or in kwire's crowd (`kwire/ports/crowd.py`): all of kwire's work but to find what is to be sent.
"""

from __future__ import annotations

import os
import socket
import sys
from struct import pack
from tempfile import TemporaryDirectory

import trio

from benchmarks.bare import CHUNK, Frames, Receiver
from benchmarks.raw_reading import PARTITION_BYTES
from kwire.ports.files import FileSlice
from kwire.ports.real_files import PosixFileSystem
from kwire.ports.tcp import TcpTransport
from kwire.ports.transport import Part, Stream

_BETWEEN = bytes(39)
"""About so much tells of a partition, and the length of its records."""
SEND_BUFFER = 102400
"""Bytes: as much as kwire has the system hold for a connection."""


def _answer(files: int) -> list[Part]:
    size = files * (len(_BETWEEN) + PARTITION_BYTES)
    parts: list[Part] = []
    with TemporaryDirectory() as folder:  # what is open stays when it is removed
        for number in range(files):
            file = PosixFileSystem().open(f"{folder}/{number}", create=True)
            file.pwrite([os.urandom(PARTITION_BYTES)], 0)
            parts += (_BETWEEN if parts else pack(">i", size) + _BETWEEN, FileSlice(file, 0, PARTITION_BYTES))
    return parts


async def _by_trio(answer: list[Part]) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        frames = Frames()
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        while data := await stream.receive_some(CHUNK):
            for _ in frames.feed(data):
                await send_parts(stream, answer)

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listener.socket.getsockname()[1], flush=True)
    await trio.serve_listeners(serve, [listener])


async def send_parts(stream: trio.SocketStream, parts: list[Part]) -> None:
    """By Trio's own means, and what is in files by sendfile."""
    for part in parts:
        if isinstance(part, FileSlice):
            await _send_file(stream.socket, part)
        else:
            assert isinstance(part, bytes)
            await stream.send_all(part)


async def _send_file(sock: trio.socket.SocketType, part: FileSlice) -> None:
    descriptor, position, end = part.file.fileno(), part.position, part.position + part.size
    assert descriptor is not None
    while position < end:
        try:
            position += os.sendfile(sock.fileno(), descriptor, position, end - position)
        except BlockingIOError:
            await trio.lowlevel.wait_writable(sock)


async def _in_a_crowd(answer: list[Part]) -> None:
    async def serve(stream: Stream) -> None:
        def heard(frames: list[bool]) -> None:
            for _ in frames:
                stream.send_soon(answer)

        await stream.attend(Receiver(heard))

    listener = await TcpTransport(send_buffer_bytes=SEND_BUFFER).listen("127.0.0.1", 0)
    print(listener.port, flush=True)
    await listener.serve(serve)


def main(means: str, files: str) -> None:
    """Until it is killed."""
    trio.run(_by_trio if means == "trio" else _in_a_crowd, _answer(int(files)))


if __name__ == "__main__":
    main(*sys.argv[1:])
