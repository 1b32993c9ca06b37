"""All fetchers of a broker, one for each leader it follows; they come and go with what there is to follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from kwire.cluster.fetcher import FetchSettings, LeaderFetcher
from kwire.metadata.image import Endpoint
from kwire.ports.transport import Transport

if TYPE_CHECKING:
    from kwire.cluster.partition import Partition


class Fetchers:
    """Which partition is fetched from whom."""

    def __init__(
        self, transport: Transport, endpoint: Callable[[int], Endpoint | None], settings: FetchSettings
    ) -> None:
        self._transport = transport
        self._endpoint = endpoint
        self._settings = settings
        self._fetchers: dict[int, tuple[LeaderFetcher, trio.CancelScope]] = {}
        self._leaders: dict[Partition, int] = {}
        self._nursery: trio.Nursery | None = None

    def follow(self, partition: Partition, leader: int) -> None:
        """Fetches the partition from that broker, in its present leader epoch; from another one no more."""
        if self._leaders.get(partition) != leader:
            self.leave(partition)
        if leader not in self._fetchers:
            fetcher = LeaderFetcher(leader, self._transport, self._endpoint, self._settings)
            scope = trio.CancelScope()
            self._fetchers[leader] = fetcher, scope
            self._start(fetcher, scope)
        self._leaders[partition] = leader
        self._fetchers[leader][0].follow(partition)

    def leave(self, partition: Partition) -> None:
        """Fetches the partition no more. A fetcher without partitions ends."""
        leader = self._leaders.pop(partition, None)
        # There is none where the other partitions left it before, and it had stopped fetching this one.
        if leader is not None and (found := self._fetchers.get(leader)) is not None:
            fetcher, scope = found
            fetcher.leave(partition)
            if fetcher.idle:
                del self._fetchers[leader]
                scope.cancel()

    async def run(self) -> None:
        """Runs the fetchers, those there are and those to come, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for fetcher, scope in self._fetchers.values():
                self._start(fetcher, scope)
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def _start(self, fetcher: LeaderFetcher, scope: trio.CancelScope) -> None:
        if self._nursery is not None:
            self._nursery.start_soon(self._run_one, fetcher, scope)

    @staticmethod
    async def _run_one(fetcher: LeaderFetcher, scope: trio.CancelScope) -> None:
        with scope:
            await fetcher.run()
