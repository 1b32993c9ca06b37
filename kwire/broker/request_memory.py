"""A bound on the bytes of requests that all connections together hold (`queued.max.request.bytes`, KIP-72)."""

from __future__ import annotations

import trio


class RequestMemory:
    """Room for large requests while they arrive. As in Kafka, the last one let in may go over the bound: so each
    request that was let in can be finished, and nobody waits for somebody who waits for him."""

    def __init__(self, limit: int) -> None:
        """`limit` in bytes; not positive means no bound."""
        self.limited = limit > 0
        self._limit = limit
        self._used = 0
        self._freed = trio.Event()

    async def take(self, size: int) -> None:
        """Returns when there is room left, and takes `size` bytes of it."""
        while self._used >= self._limit:
            if self._freed.is_set():
                self._freed = trio.Event()
            await self._freed.wait()
        self._used += size

    def give_back(self, size: int) -> None:
        self._used -= size
        self._freed.set()
