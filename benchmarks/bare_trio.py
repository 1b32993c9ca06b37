"""`python -m benchmarks.bare_trio ANSWER [FETCHED]`: what Trio alone can do with a broker's frames.

A server on a free port of 127.0.0.1, which it prints. It reads frames, looks at nothing but their sizes, and answers
each with ANSWER (hex). A Fetch it answers with FETCHED: at once where more of the others have come than of these, else
when the next one comes. What it does is what no broker on Trio can do without.
"""

from __future__ import annotations

import sys
from struct import unpack_from

import trio

_CHUNK = 120 * 1024
_FETCH = b"\0\x01"


class _Server:
    def __init__(self, answer: bytes, fetched: bytes) -> None:
        self._answer = answer
        self._fetched = fetched
        self._waiting: list[trio.SocketStream] = []
        """With a Fetch."""
        self._unfetched = 0
        """Frames that no Fetch was answered for."""

    async def serve(self, stream: trio.SocketStream) -> None:
        held = b""
        while data := await stream.receive_some(_CHUNK):
            held = held + data if held else data
            position = frames = 0
            while len(held) - position >= 4:
                (size,) = unpack_from(">i", held, position)
                if len(held) - position - 4 < size:
                    break
                if held[position + 4 : position + 6] == _FETCH:
                    self._waiting.append(stream)
                else:
                    frames += 1
                position += 4 + size
            held = held[position:]
            if frames:
                self._unfetched += frames
                await stream.send_all(self._answer * frames)
            while self._waiting and self._unfetched:
                self._unfetched -= 1
                await self._waiting.pop().send_all(self._fetched)


async def _main(answer: bytes, fetched: bytes = b"") -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listener.socket.getsockname()[1], flush=True)
    await trio.serve_listeners(_Server(answer, fetched).serve, [listener])


if __name__ == "__main__":
    trio.run(_main, *map(bytes.fromhex, sys.argv[1:]))
