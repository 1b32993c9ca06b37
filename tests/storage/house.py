"""A broker's log dirs over several runs of their manager, in memory."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from kwire.config.topic import LogConfig
from kwire.ports.memory_files import Fault, MemoryFileSystem
from kwire.storage.manager import LogManager

from .support import CLUSTER, ROOT, ManualClock, manager

OTHER_ID = bytes(range(1, 17))
NOT_CLEAN = "was not stopped cleanly"
"""What the log says of a dir that is recovered."""


class House:
    """The dirs, and the manager of each run."""

    def __init__(self, dirs: Sequence[str] = (ROOT,), **keys: str) -> None:
        self.clock = ManualClock()
        self.files = MemoryFileSystem(self.clock)
        self.dirs = dirs
        self.keys = keys
        self.topics: dict[str, LogConfig] = {}

    async def start(self, cluster: str = CLUSTER, node: int = 1) -> LogManager:
        managed = manager(self.files, self.clock, self.dirs, **self.keys)
        await managed.lock()
        await self.load(managed, cluster, node)
        return managed

    async def load(self, managed: LogManager, cluster: str = CLUSTER, node: int = 1) -> None:
        await managed.load(cluster, node, lambda topic: self.topics.get(topic, LogConfig()))

    async def stop(self, managed: LogManager, epoch: int = 7) -> None:
        await managed.close(epoch)
        managed.unlock()

    def kill(self) -> None:
        self.files.kill_holder()

    def contents(self) -> dict[str, bytes]:
        """Every file of every dir."""
        found = {}
        folders = list(self.dirs)
        while folders:
            folder = folders.pop()
            for name in self.files.list(folder):
                path = f"{folder}/{name}"
                try:
                    found[path] = self.files.read(path)
                except FileNotFoundError:
                    folders.append(path)
        return found


def broken(path: str, *operations: str) -> Fault:
    """Everything below `path` fails, or only these operations."""

    def fault(operation: str, where: str, size: int) -> None:
        if where.startswith(path) and (operation in operations or not operations):
            raise OSError(errno.EIO, "Input/output error", where)

    return fault
