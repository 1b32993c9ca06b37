"""The command line, and a scripted broker to point it at."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import trio
from click.testing import CliRunner, Result

from kwire.cli.app import app
from kwire.ports.tcp import TcpTransport
from kwire.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.client.scripted_broker import ScriptedBroker, metadata


class Kwire:
    """Runs `kwire` with arguments, in this process."""

    def __init__(self, bootstrap: str | None = None) -> None:
        self.bootstrap = bootstrap

    def __call__(self, *arguments: str, input: bytes | str | None = None) -> Result:
        options: Sequence[str] = ["--bootstrap", self.bootstrap] if self.bootstrap else []
        return CliRunner().invoke(app, [*arguments, *options], input=input, catch_exceptions=False)


@pytest.fixture
def kwire() -> Kwire:
    """The command without a cluster."""
    return Kwire()


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    """A scripted broker on a real port, in a thread of its own; it has one topic, t, of two partitions."""
    scripted = ScriptedBroker(TcpTransport(), "127.0.0.1", 0)

    def answer(request: MetadataRequest) -> MetadataResponse:
        return at_home(scripted, metadata({"t": [1, 1]}))

    scripted.on(MetadataRequest, answer)
    started = threading.Event()
    stop: list[Any] = []

    async def serve() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(scripted.run)
            stop.extend([trio.lowlevel.current_trio_token(), nursery.cancel_scope])
            started.set()

    thread = threading.Thread(target=trio.run, args=[serve])
    thread.start()
    assert started.wait(30)
    yield scripted
    token, scope = stop
    token.run_sync_soon(scope.cancel)
    thread.join(30)


def at_home(scripted: ScriptedBroker, response: MetadataResponse) -> MetadataResponse:
    """The same response with the broker's real address."""
    for described in response.brokers:
        described.host, described.port = scripted.host, scripted.port
    return response


@pytest.fixture
def kwire_at(broker: ScriptedBroker) -> Kwire:
    """The command with the scripted broker for its cluster."""
    return Kwire(f"127.0.0.1:{broker.port}")
