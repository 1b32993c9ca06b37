"""The ways in which a stream is attended: the same tests hold for each."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator

import pytest
import trio

from kwire.ports import crowd as crowds
from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.tcp import TcpTransport
from kwire.ports.transport import Stream, Transport
from tests.ports.attending.ends import Ends
from tests.ports.streams import until


@pytest.fixture(params=["crowd", pytest.param("no room", marks=pytest.mark.plain), "task", "memory"])
async def ends(
    request: pytest.FixtureRequest, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Ends]:
    """Called by the crowd; or by a task: the crowd has no room, there is none, or there are no sockets."""
    how = request.param
    if how == "no room":
        monkeypatch.setattr(crowds.Crowd, "join", full)
    transport: Transport = TcpTransport() if how != "memory" else MemoryNetwork().transport("here")
    accepted: list[Stream] = []

    async def keep(stream: Stream) -> None:
        accepted.append(stream)
        await trio.sleep_forever()

    listener = await transport.listen("127.0.0.1", 0)
    nursery.start_soon(listener.serve, keep)
    connected = await transport.connect(listener.host, listener.port)
    await until(lambda: accepted)
    mine, theirs = accepted[0], connected
    if how == "task":
        mine, theirs = theirs, mine
    yield Ends(mine, theirs, how == "crowd")
    mine.close()
    theirs.close()
    nursery.cancel_scope.cancel()


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no room")
