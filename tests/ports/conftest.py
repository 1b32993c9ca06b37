"""Fixtures of the tests of streams."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import trio

from kwire.ports import crowd as crowds
from kwire.ports.tcp import TcpTransport
from tests.ports.streams import PlainFile, Server


@pytest.fixture(params=["sendfile", "read"])
def open_file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[bytes], PlainFile]]:
    descriptors = []

    def create(content: bytes) -> PlainFile:
        path = tmp_path / "segment.log"
        path.write_bytes(content)
        descriptors.append(os.open(path, os.O_RDWR))
        return PlainFile(str(path), descriptors[-1], sendable=request.param == "sendfile")

    yield create
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.fixture
async def server(nursery: trio.Nursery) -> AsyncIterator[Server]:
    listener = await TcpTransport(receive_buffer_bytes=1_000_000).listen("127.0.0.1", 0)
    server = Server(listener.port)
    nursery.start_soon(listener.serve, server.keep)
    yield server
    for client in server.clients:
        client.close()
    nursery.cancel_scope.cancel()


@pytest.fixture
def long_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, a pass has the time for all that came."""
    monkeypatch.setattr(crowds, "PASS_SECONDS", 60.0)
