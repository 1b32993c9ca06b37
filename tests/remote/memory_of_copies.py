"""What memory it takes to copy a file to S3 and back: `python -m tests.remote.memory_of_copies SETTINGS FILE TIMES`.

SETTINGS is JSON as `tests.remote.s3.s3_settings` has them. Prints, in MiB, by how much the process was larger at most
than before: while the file went up so many times, two at once, and while all of it came back in pieces of 4 MiB.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from kwire.config.remote_storage import RemoteStorageConfig
from kwire.ports.files import FileSlice
from kwire.ports.real_files import PosixFileSystem
from kwire.ports.system import system_ports
from kwire.remote.opening import open_object_store

PIECE = 4 << 20
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def memory(what: str) -> int:
    """VmRSS, or VmHWM: the largest it has been since that was reset. KiB."""
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(what))


def begin() -> int:
    CLEAR.write_text("5")
    return memory("VmRSS")


async def growth(work: Callable[[int], Awaitable[None]], times: int) -> int:
    before = begin()
    two = trio.CapacityLimiter(2)

    async def one(number: int) -> None:
        async with two:
            await work(number)

    async with trio.open_nursery() as nursery:
        for number in range(times):
            nursery.start_soon(one, number)
    return (memory("VmHWM") - before) // 1024


async def main(settings: str, path: str, times: int) -> None:
    config = RemoteStorageConfig({f"rsm.config.{name}": text for name, text in json.loads(settings).items()})
    store = await open_object_store(config, system_ports(threads=2))
    file = PosixFileSystem().open(path)
    size = file.size()

    async def up(number: int) -> None:
        await store.put(f"copies/{number}", [FileSlice(file, 0, size)])

    async def down(number: int) -> None:
        for start in range(0, size, PIECE):
            got = await store.get(f"copies/{number}", start, start + PIECE)
            assert got == file.pread(PIECE, start)

    print(await growth(up, times), await growth(down, times))
    await store.close()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
