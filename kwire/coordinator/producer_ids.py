"""Ids for producers, from blocks that were durably reserved: an id once given is never given again, crash or not.

What is left of a block when the broker stops is lost; there are 2^63 ids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

BLOCK_SIZE = 1000
"""Ids reserved at once, as in Apache Kafka."""

PREFETCH_AT = 100
"""Ids left in the block in use at which the next is fetched, so that nobody has to wait for it."""

Reserve = Callable[[int], Awaitable[int]]
"""Durably reserves so many ids in a row that nobody else gets, and returns the first: the controller does."""


class ProducerIds:
    """Hands out producer ids. Any number of tasks may call `next`."""

    def __init__(self, reserve: Reserve, start_soon: Callable[[Callable[[], Awaitable[None]]], object]) -> None:
        """`start_soon` starts a background task (a nursery's method), for fetching the next block ahead of need."""
        self._reserve = reserve
        self._start_soon = start_soon
        self._block = range(0)
        self._reserved: range | None = None
        self._prefetching = False
        self._lock = trio.Lock()

    async def next(self) -> int:
        """An id never given before. Raises what `reserve` raises where a block is needed and cannot be had."""
        while not self._block:
            await self._fetch()
            if self._reserved is not None:
                self._block, self._reserved = self._reserved, None
        producer_id, self._block = self._block[0], self._block[1:]
        if len(self._block) <= PREFETCH_AT and self._reserved is None and not self._prefetching:
            self._prefetching = True
            self._start_soon(self._prefetch)
        return producer_id

    async def _fetch(self) -> None:
        """Sees to it that there is a block to go on with; callers that come meanwhile wait for the same one."""
        async with self._lock:
            if not self._block and self._reserved is None:
                self._reserved = await self._reserve_block()

    async def _reserve_block(self) -> range:
        first = await self._reserve(BLOCK_SIZE)
        return range(first, first + BLOCK_SIZE)

    async def _prefetch(self) -> None:
        try:
            async with self._lock:
                if self._reserved is None:
                    self._reserved = await self._reserve_block()
        except Exception:
            # Not needed yet: whoever needs the block asks again and gets the error if it lasts.
            return
        finally:
            self._prefetching = False
