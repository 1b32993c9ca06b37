"""Logs that concern who looks at logs at intervals, and has nothing to do with the others: there may be thousands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import trio

from kwire.storage.checkpoints import TopicPartition

if TYPE_CHECKING:
    from kwire.storage.log import Log


class Register:
    """At most one log of each partition: the one that came last."""

    __slots__ = ("_logs", "_occupied")

    def __init__(self) -> None:
        self._logs: dict[TopicPartition, Log] = {}
        self._occupied: trio.Event | None = None

    def add(self, log: Log) -> None:
        self._logs[log.key] = log
        if self._occupied is not None:
            self._occupied.set()
            self._occupied = None

    def discard(self, log: Log) -> None:
        """Does nothing where it is not in here, or another one of its partition is."""
        if log in self:
            del self._logs[log.key]

    def __contains__(self, log: Log) -> bool:
        return self._logs.get(log.key) is log

    def __len__(self) -> int:
        return len(self._logs)

    def __iter__(self) -> Iterator[Log]:
        """Those that are in here now; logs may come and go meanwhile."""
        return iter(list(self._logs.values()))

    async def wait_occupied(self) -> None:
        """Returns at once where there is a log, else when one comes, which may be gone by then.

        With none there is nothing to wake up for: an idle broker would, once a second.
        """
        if self._logs:
            await trio.lowlevel.checkpoint()
            return
        if self._occupied is None:
            self._occupied = trio.Event()
        await self._occupied.wait()
