"""`python -m benchmarks.bare trio|crowd ANSWER [FETCHED]`: what can be done at most with a broker's frames.

A server on a free port of 127.0.0.1, which it prints. It reads frames, looks at nothing but their sizes, and answers
each with ANSWER (hex). A Fetch it answers with FETCHED: at once where more of the others have come than of these, else
when the next one comes. It serves by Trio's own means, or in kwire's crowd (`kwire/ports/crowd.py`): that is all that
remains of kwire's work for a request where nothing is done for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from struct import unpack_from
from typing import Generic, TypeVar

import trio

from kwire.ports.attending import Next
from kwire.ports.tcp import TcpTransport
from kwire.ports.transport import Stream

CHUNK = 120 * 1024
"""Bytes: so much is received at once."""
_FETCH = b"\0\x01"

S = TypeVar("S")


class _Answers(Generic[S]):
    """What is to be sent to whom, of streams of some kind."""

    def __init__(self, answer: bytes, fetched: bytes) -> None:
        self._answer = answer
        self._fetched = fetched
        self._waiting: list[S] = []
        """With a Fetch."""
        self._unfetched = 0
        """Frames that no Fetch was answered for."""

    def to(self, stream: S, frames: list[bool]) -> Iterator[tuple[S, bytes]]:
        """After frames of that stream; each is a Fetch or not."""
        self._waiting += [stream] * sum(frames)
        others = len(frames) - sum(frames)
        if others:
            self._unfetched += others
            yield stream, self._answer * others
        while self._waiting and self._unfetched:
            self._unfetched -= 1
            yield self._waiting.pop(), self._fetched


class Frames:
    """Of one stream."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> list[bool]:
        """Of each frame that is whole now, whether it is a Fetch."""
        held = self._held + data if self._held else data
        frames = []
        position = 0
        while len(held) - position >= 4:
            (size,) = unpack_from(">i", held, position)
            if len(held) - position - 4 < size:
                break
            frames.append(held[position + 4 : position + 6] == _FETCH)
            position += 4 + size
        self._held = held[position:]
        return frames


async def _by_trio(answers: _Answers[trio.SocketStream]) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        frames = Frames()
        while data := await stream.receive_some(CHUNK):
            for other, answer in answers.to(stream, frames.feed(data)):
                await other.send_all(answer)

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listener.socket.getsockname()[1], flush=True)
    await trio.serve_listeners(serve, [listener])


class Receiver:
    """Of a stream in the crowd."""

    wanted = CHUNK
    room = None
    needed = 1

    def __init__(self, heard: Callable[[list[bool]], None]) -> None:
        """`heard` is called with the frames that have come, as `Frames.feed` tells of them, and sends their answers."""
        self._frames = Frames()
        self._heard = heard

    def received(self, data: bytes) -> Next:
        if not data:
            return Next.LEAVE
        self._heard(self._frames.feed(data))
        return Next.READ

    def filled(self, size: int) -> Next:
        raise NotImplementedError("there is no room to fill")

    def resumed(self) -> Next:
        return Next.READ


async def _in_a_crowd(answers: _Answers[Stream]) -> None:
    async def serve(stream: Stream) -> None:
        def heard(frames: list[bool]) -> None:
            for other, answer in answers.to(stream, frames):
                other.send_soon([answer])

        await stream.attend(Receiver(heard))

    listener = await TcpTransport().listen("127.0.0.1", 0)
    print(listener.port, flush=True)
    await listener.serve(serve)


def main(means: str, answer: str, fetched: str = "") -> None:
    """Until it is killed."""
    given = bytes.fromhex(answer), bytes.fromhex(fetched)
    if means == "trio":
        trio.run(_by_trio, _Answers(*given))
    else:
        trio.run(_in_a_crowd, _Answers(*given))


if __name__ == "__main__":
    main(*sys.argv[1:])
