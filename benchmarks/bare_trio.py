"""`python -m benchmarks.bare_trio ANSWER`: what Trio alone can do with a broker's frames.

A server on a free port of 127.0.0.1, which it prints. It reads frames, looks at nothing but their sizes, and answers
each with ANSWER (hex). What it does is what no broker on Trio can do without.
"""

from __future__ import annotations

import sys
from struct import unpack_from

import trio

_CHUNK = 120 * 1024


async def _serve(stream: trio.SocketStream, answer: bytes) -> None:
    held = b""
    while data := await stream.receive_some(_CHUNK):
        held = held + data if held else data
        position = frames = 0
        while len(held) - position >= 4:
            (size,) = unpack_from(">i", held, position)
            if len(held) - position - 4 < size:
                break
            position += 4 + size
            frames += 1
        held = held[position:]
        if frames:
            await stream.send_all(answer * frames)


async def _main(answer: bytes) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(listener.socket.getsockname()[1], flush=True)
    await trio.serve_listeners(lambda stream: _serve(stream, answer), [listener])


if __name__ == "__main__":
    trio.run(_main, bytes.fromhex(sys.argv[1]))
