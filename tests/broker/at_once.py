"""A client of a connection whose requests may be handled without its task, and what stands still in one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from struct import pack

import trio
import trio.testing

from kwire.broker.connection import Connection
from kwire.broker.registry import Api, LoadedApi, Needs
from kwire.broker.request_memory import RequestMemory
from kwire.broker.session import ANONYMOUS, Session
from kwire.broker.templates import Templates
from kwire.ports.at_once import Signal
from kwire.ports.clock import TrioClock
from kwire.ports.stepping import HERE
from kwire.ports.transport import Stream, Transport
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.headers import RequestHeader, encode_request_header
from kwire.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kwire.security.authorizer import AllowAll
from tests.broker.test_connection import Script, Waits, answer, answers, request

LONG = "x" * 0x7000
"""A name that makes a large answer."""

AT_ONCE, IN_TASK = ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_TRANSACTIONS


class Ticking(TrioClock):
    """Goes on by a fixed time whenever it is looked at."""

    def __init__(self, tick: float) -> None:
        self.now = 0.0
        self._tick = tick

    def monotonic(self) -> float:
        self.now += self._tick
        return self.now


class AtOnce(Script):
    """Two APIs: what DESCRIBE_CLUSTER is asked may be done at once, DESCRIBE_TRANSACTIONS needs the task.

    A reply may be a function, too, which is the handler then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.request_memory = RequestMemory(-1)
        self.templates = Templates()
        self.stepped: list[bool] = []
        """Of each request, whether its handler began without the task."""
        self._apis = {key: self._load(key, at_once) for key, at_once in ((AT_ONCE, True), (IN_TASK, False))}

    def _load(self, key: ApiKey, at_once: bool) -> LoadedApi:
        api = Api(key, 0, 0, "describe_cluster", Needs.nothing(), at_once=at_once)
        return LoadedApi(api, DescribeClusterRequest, DescribeClusterResponse, self._handle, self._failed)

    def find(self, key: int, version: int) -> LoadedApi | None:
        return self._apis.get(ApiKey(key))

    async def _handle(self, broker: object, context: object, request: object) -> object:
        self.stepped.append(HERE.stepping)
        reply = await super()._handle(broker, context, request)
        return await reply() if callable(reply) else reply


class Stands(Waits):
    """Waits for a signal, not for an event."""

    at_once = True

    def __init__(self, name: str, then: Exception | None = None) -> None:
        super().__init__(name, pipelined=False)
        self._then = then
        self.signal = Signal()
        self.ended = False

    def hurry(self) -> None:
        self.hurried = True
        self.signal.set()

    async def response(self) -> DescribeClusterResponse:
        try:
            await self.signal.wait()
            if self._then is not None:
                raise self._then
            return answer(self._name)
        finally:
            self.ended = True


def in_task(correlation_id: int) -> bytes:
    """A request that needs the task."""
    header = encode_request_header(RequestHeader(IN_TASK, 0, correlation_id, "test"))
    body = header + codec.encode(DescribeClusterRequest(), 0)
    return pack(">i", len(body)) + body


class Client:
    """One that has asked once, so that its next request is begun without the task."""

    def __init__(self, script: AtOnce, transport: Transport) -> None:
        self.script = script
        self.over = trio.Event()
        """Set when the connection has ended."""
        self.stream: Stream
        self.connection: Connection
        self._transport = transport

    async def serve(self, stream: Stream, nursery: trio.Nursery) -> None:
        session = Session("PLAINTEXT", ANONYMOUS, "client", "1", AllowAll())
        self.connection = Connection(self.script, stream, session)  # type: ignore[arg-type]
        await self.connection.run(nursery.start_soon)
        self.over.set()

    async def connect(self, host: str, port: int) -> None:
        self.stream = await self._transport.connect(host, port)
        await self.ask(answer("warm"))
        assert await self.answers(1) == [(1, "warm", 0)]
        await trio.testing.wait_all_tasks_blocked()

    async def ask(self, *replies: object, requests: bytes | None = None) -> None:
        """Sends a request for each reply, numbered from 1, in one piece; or `requests`."""
        self.script.replies += replies
        if requests is None:
            requests = b"".join(request(number) for number in range(1, len(replies) + 1))
        await self.stream.send([requests])

    async def answers(self, count: int) -> list[tuple[int, str, int]]:
        return await answers(self.stream, count)


@asynccontextmanager
async def connected(
    transport: Transport, clients: int = 1, *, largest_request: int = 1000
) -> AsyncIterator[list[Client]]:
    """Clients of one broker, and what they asked for first forgotten."""
    script = AtOnce()
    script.config["socket.request.max.bytes"] = largest_request
    connecting: list[Client] = []
    listener = await transport.listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, lambda stream: connecting[-1].serve(stream, nursery))
        for _ in range(clients):
            connecting.append(Client(script, transport))
            await connecting[-1].connect(listener.host, listener.port)
        assert script.stepped == [False] * clients
        for noted in (script.started, script.stepped, script.replies):
            noted.clear()
        yield connecting
        nursery.cancel_scope.cancel()
    listener.close()
