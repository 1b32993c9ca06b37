"""A connection of kwire's own client, which speaks the protocol and nothing else."""

from __future__ import annotations

from kwire.client.connection import REQUEST_TIMEOUT, Connection
from kwire.ports.tcp import TcpTransport


async def connect(bootstrap: str, request_timeout: float = REQUEST_TIMEOUT) -> Connection:
    """To the broker at HOST:PORT; a request fails after `request_timeout` seconds."""
    host, port = bootstrap.rsplit(":", 1)
    return await Connection.open(TcpTransport(), host, int(port), request_timeout=request_timeout)
