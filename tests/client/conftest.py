"""A client and a scripted broker on a network in memory."""

from __future__ import annotations

import pytest
import trio

from kwire.client.client import Client
from kwire.ports.memory_transport import MemoryNetwork
from kwire.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_broker import PORT, ScriptedBroker, metadata


@pytest.fixture
def network() -> MemoryNetwork:
    return MemoryNetwork()


@pytest.fixture
async def broker(network: MemoryNetwork, nursery: trio.Nursery) -> ScriptedBroker:
    """A running broker with one topic, t, of two partitions."""
    scripted = ScriptedBroker(network.transport("broker"))
    scripted.on(MetadataRequest, metadata({"t": [1, 1]}))
    await nursery.start(scripted.run)
    return scripted


@pytest.fixture
def client(network: MemoryNetwork) -> Client:
    return Client(network.transport("here"), [("broker", PORT)])
