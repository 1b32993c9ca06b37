"""Clients of a connection whose requests may be handled without its task, over TCP and in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.tcp import TcpTransport
from kwire.ports.transport import Transport
from tests.broker.at_once import Client, connected
from tests.broker.foreseen import use_templates_at_once

FEW_BYTES = 5000
"""So much the network holds of what a client does not take."""


@pytest.fixture(params=["tcp", "memory"])
async def clients(request: pytest.FixtureRequest) -> AsyncIterator[list[Client]]:
    transport: Transport = MemoryNetwork(buffer_bytes=FEW_BYTES).transport("here")
    if request.param == "tcp":
        transport = TcpTransport(send_buffer_bytes=FEW_BYTES, receive_buffer_bytes=FEW_BYTES)
    async with connected(transport, 2) as clients:
        yield clients


@pytest.fixture
async def client(clients: list[Client]) -> Client:
    return clients[0]


@pytest.fixture(params=["understood", pytest.param("as before", marks=pytest.mark.plain)])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has each request handled in the usual way, and then each by a template, as if its like had come before."""
    if request.param == "as before":
        use_templates_at_once(monkeypatch)
