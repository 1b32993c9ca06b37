"""Logs that move between two log dirs in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from kwire.storage import layout
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir
from kwire.storage.manager import LogManager
from tests.storage.house import House
from tests.storage.support import TOPIC_ID, config

ONE, TWO, THREE = "/one", "/two", "/three"
MANY_STEPS = 1_000_000


class Killed(BaseException):
    """The process ends here."""


@asynccontextmanager
async def moving(managed: LogManager) -> AsyncIterator[None]:
    """The moves go on meanwhile."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.moves.run)
        yield
        nursery.cancel_scope.cancel()


async def a_log(managed: LogManager, partition: int = 0, directory: LogDir | None = None, **values: object) -> Log:
    directory = directory or managed.dirs[0]
    settings = config(**{"segment_bytes": 1000, **values})
    return await managed.get_or_create("t", partition, TOPIC_ID, settings, directory=directory.id)


async def moved(log: Log, target: LogDir) -> None:
    """Returns when the log is there."""
    for _ in range(MANY_STEPS):
        if log.log_dir is target:
            return
        await trio.lowlevel.checkpoint()
    raise AssertionError(f"{log} did not come to {target}")


def folders(house: House, root: str, suffix: str = "") -> list[str]:
    """The partitions' folders in a dir: the live ones, or those of this suffix."""
    parsed = [(name, layout.parse_partition_dir(name)) for name in house.files.list(root)]
    return [name for name, found in parsed if found is not None and found.suffix == suffix]


def files_of(house: House, folder: str) -> dict[str, bytes]:
    return {name: house.files.read(f"{folder}/{name}") for name in house.files.list(folder)}
