"""`python -m benchmarks.bare_trio ANSWER [FETCHED]`: what Trio alone can do with a broker's frames.

A server on a free port of 127.0.0.1, which it prints. It reads frames, looks at nothing but their sizes, and answers
each with ANSWER (hex). A Fetch it answers with FETCHED, when the next of the others comes. What it does is what no
broker on Trio can do without.
"""

from __future__ import annotations

import sys
from struct import unpack_from

import trio

_CHUNK = 120 * 1024
_FETCH = b"\0\x01"


async def _serve(stream: trio.SocketStream, waiting: list[trio.SocketStream], answer: bytes, fetched: bytes) -> None:
    held = b""
    while data := await stream.receive_some(_CHUNK):
        held = held + data if held else data
        position = frames = 0
        while len(held) - position >= 4:
            (size,) = unpack_from(">i", held, position)
            if len(held) - position - 4 < size:
                break
            if held[position + 4 : position + 6] == _FETCH:
                waiting.append(stream)
            else:
                frames += 1
            position += 4 + size
        held = held[position:]
        if frames:
            await stream.send_all(answer * frames)
            while waiting:
                await waiting.pop().send_all(fetched)


async def _main(answer: bytes, fetched: bytes = b"") -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listener.socket.getsockname()[1], flush=True)
    waiting: list[trio.SocketStream] = []
    await trio.serve_listeners(lambda stream: _serve(stream, waiting, answer, fetched), [listener])


if __name__ == "__main__":
    trio.run(_main, *map(bytes.fromhex, sys.argv[1:]))
