"""Connections to the other brokers of the cluster, on the listener that brokers use among themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from kwire.client.connection import Connection
from kwire.client.errors import BrokerUnreachable

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.protocol.schema import Message


class Peers:
    """One connection a broker, opened when it is first needed. Any number of tasks may call."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._connections: dict[int, Connection] = {}
        self._opening: dict[int, trio.Lock] = {}

    async def call(self, broker_id: int, request: Message) -> Any:
        """The other broker's response, for which `request.timeout.ms` is waited at the most. Raises ClientError."""
        return await (await self._connection(broker_id)).call(request)

    def close(self) -> None:
        """Closes them at once."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def _connection(self, broker_id: int) -> Connection:
        async with self._opening.setdefault(broker_id, trio.Lock()):
            connection = self._connections.get(broker_id)
            endpoint = self._broker.replicas.endpoint(broker_id)
            if endpoint is None:
                raise BrokerUnreachable(f"broker {broker_id} is not known")
            if (
                connection is None
                or connection.closed
                or (connection.host, connection.port) != (endpoint.host, endpoint.port)
            ):
                if connection is not None:
                    connection.close()
                timeout = self._broker.config["request.timeout.ms"] / 1000
                connection = self._connections[broker_id] = await Connection.open(
                    self._broker.ports.transport, endpoint.host, endpoint.port, request_timeout=timeout
                )
            return connection
