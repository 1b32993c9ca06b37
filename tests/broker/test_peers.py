"""Connections from broker to broker."""

from __future__ import annotations

import pytest
import trio.testing

from kwire.broker.peers import Peers
from kwire.client.errors import BrokerUnreachable
from kwire.metadata.image import Endpoint
from kwire.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.scene import HOST, PORT, Scene, running

PEER = 7


def lives(scene: Scene, monkeypatch: pytest.MonkeyPatch, host: str | None) -> None:
    """Has the broker find its peer there."""
    found = None if host is None else Endpoint("PLAINTEXT", host, PORT, "PLAINTEXT")
    monkeypatch.setattr(scene.broker.replicas, "endpoint", lambda broker_id: found if broker_id == PEER else None)


async def clients(scene: Scene) -> int:
    await trio.testing.wait_all_tasks_blocked()
    return len(scene.broker.connections)


async def test_calls_share_a_connection_until_it_is_lost(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as scene:
        peers = Peers(scene.broker)
        lives(scene, monkeypatch, HOST)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(peers.call, PEER, ListTransactionsRequest())
        assert await clients(scene) == 2
        peers.close()
        assert await clients(scene) == 1
        assert (await peers.call(PEER, ListTransactionsRequest())).error_code == 0
        assert await clients(scene) == 2
        peers.close()


async def test_a_broker_that_moved_is_left_where_it_was(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as scene:
        peers = Peers(scene.broker)
        lives(scene, monkeypatch, HOST)
        await peers.call(PEER, ListTransactionsRequest())
        assert await clients(scene) == 2
        lives(scene, monkeypatch, "elsewhere")
        with pytest.raises(BrokerUnreachable):
            await peers.call(PEER, ListTransactionsRequest())
        assert await clients(scene) == 1


async def test_a_broker_that_nobody_knows_is_not_called(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as scene:
        lives(scene, monkeypatch, None)
        with pytest.raises(BrokerUnreachable, match="not known"):
            await Peers(scene.broker).call(PEER, ListTransactionsRequest())
