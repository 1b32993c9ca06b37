"""All connections of the broker: how many there may be, and the end of those that are idle."""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from typing import TYPE_CHECKING

import trio

from kwire.config.checks import connection_overrides
from kwire.config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kwire.broker.connection import Connection
    from kwire.config.broker import BrokerConfig
    from kwire.ports.clock import Clock


class Connections:
    """Counts and closes connections by `max.connections`, `max.connections.per.ip` and `connections.max.idle.ms`."""

    def __init__(self, config: BrokerConfig, clock: Clock, addresses: Callable[[str], Awaitable[list[str]]]) -> None:
        """`addresses` gives those of a host name, as `Transport.addresses`."""
        self.of_brokers: str | None = None
        """The listener by which brokers come, where there are others too: there is always room for who comes by it
        (KIP-402)."""
        self._clock = clock
        self._addresses = addresses
        self._per_host_overrides: dict[str, int] = {}
        self._resolved = ""
        """What `max.connections.per.ip.overrides` was when its hosts were looked up."""
        self._open: dict[Connection, str] = {}
        """With the listener by which each came."""
        self._surplus: set[Connection] = set()
        """Those that were closed since there are too many, until they are gone."""
        self._per_host: Counter[str] = Counter()
        self._freed = trio.Event()
        self._none = trio.Event()
        self._take_limits(config)

    async def configure(self, config: BrokerConfig) -> None:
        """Takes the limits from a configuration. Where there are more than `max.connections` now, those that were
        silent the longest are closed; the other limits are for those that come.

        Raises ConfigError for an unknown host: the limits of single hosts stay as they are then.
        """
        self._take_limits(config)
        text = config["max.connections.per.ip.overrides"]
        if text == self._resolved:
            return  # whoever changes something else does not wait for the name server
        overrides = {}
        for host, most in connection_overrides(text).items():
            try:
                found = await self._addresses(host)
            except OSError as error:
                raise ConfigError(f"max.connections.per.ip.overrides: {host}: {error.strerror or error}") from None
            overrides.update(dict.fromkeys(found, most))
        self._per_host_overrides, self._resolved = overrides, text

    def _take_limits(self, config: BrokerConfig) -> None:
        self._most: int = config["max.connections"]
        self._most_per_host: int = config["max.connections.per.ip"]
        max_idle: int = config["connections.max.idle.ms"]
        self._max_idle = max_idle / 1000 if max_idle >= 0 else float("inf")
        self._freed.set()
        self._close_surplus()

    def __len__(self) -> int:
        return len(self._open)

    async def until_room(self, listener: str = "") -> None:
        """Waits until one more connection may be accepted by this listener (`max.connections`).

        Kafka's acceptor pauses likewise.
        """
        while len(self._open) >= self._most and listener != self.of_brokers:
            if self._freed.is_set():
                self._freed = trio.Event()
            await self._freed.wait()

    def admits(self, host: str) -> bool:
        """Whether one more connection from this host is allowed (`max.connections.per.ip`)."""
        return self._per_host[host] < self._per_host_overrides.get(host, self._most_per_host)

    def add(self, connection: Connection, host: str, listener: str = "") -> None:
        """Counts one that came by this listener. For a broker that comes when all room is taken, another goes."""
        self._open[connection] = listener
        self._per_host[host] += 1
        self._close_surplus()

    def _close_surplus(self) -> None:
        """Closes those that were silent the longest until no more are left than may be."""
        surplus = len(self._open) - len(self._surplus) - self._most
        if surplus <= 0:
            return
        now = self._clock.monotonic()
        others = (each for each, listener in self._open.items() if listener != self.of_brokers)
        of_clients = [connection for connection in others if connection not in self._surplus]
        for connection in nsmallest(surplus, of_clients, key=lambda each: each.last_active(now)):
            self._surplus.add(connection)
            connection.close()

    def remove(self, connection: Connection, host: str) -> None:
        self._open.pop(connection, None)
        self._surplus.discard(connection)
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        self._freed.set()
        if not self._open:
            self._none.set()

    async def until_none(self) -> None:
        """Waits until no connection is open."""
        while self._open:
            self._none = trio.Event()
            await self._none.wait()

    def stop(self) -> None:
        """Asks every connection to end after the answers it owes."""
        for connection in list(self._open):
            connection.stop()

    def close(self) -> None:
        """Ends every connection at once."""
        for connection in list(self._open):
            connection.close()

    async def reap_idle(self) -> None:
        """Closes connections on which nothing happened for `connections.max.idle.ms`; runs until cancelled.

        Sleeps until the one that is silent the longest can have reached the limit: no timer a connection.
        """
        while True:
            now = self._clock.monotonic()
            oldest = now
            for connection in list(self._open):
                last_active = connection.last_active(now)
                if now - last_active >= self._max_idle:
                    connection.close()
                else:
                    oldest = min(oldest, last_active)
            # At most a tenth of the limit early or late, so that a limit lowered at run time acts soon enough.
            await trio.sleep(max(min(oldest + self._max_idle - now, self._max_idle), self._max_idle / 10, 0.01))
