"""A proxy in front of an S3 server that spoils some of the exchanges.

Each exchange gets a connection of its own to the server. What happens to it is asked of a plan, which sees the request.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import NamedTuple

import trio

CHUNK = 65536


class Kind(Enum):
    SLOW_DOWN = "503, and the server has seen nothing"
    HANG = "no answer, and the server has seen nothing"
    LOST_ANSWER = "the server has done it, and the connection is cut"
    HANG_AFTER = "the server has done it, and there is no answer"
    CUT_REQUEST = "the connection is cut amid the request's body"
    CUT_ANSWER = "the connection is cut amid the answer's body"
    CUT_HEAD = "the connection is cut amid the answer's head"
    TRICKLE = "the answer comes at a few bytes a second"
    WHOLE = "a range is answered as if it were the whole object"
    OTHER_RANGE = "a range is answered with another one"
    SHORT = "a range is answered with half of it, as if that were all"
    KEY_REFUSED = "all keys but one are deleted"
    ERROR_IN_200 = "the answer begins well and turns out to be an error"


def _answer(status: str, body: str) -> bytes:
    body = f"<?xml version='1.0' encoding='UTF-8'?>{body}"
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


MADE_UP = {
    Kind.SLOW_DOWN: _answer(
        "503 Slow Down", "<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
    ),
    Kind.ERROR_IN_200: _answer(
        "200 OK", "<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"
    ),
    Kind.KEY_REFUSED: _answer(
        "200 OK",
        "<DeleteResult><Deleted><Key>a/0</Key></Deleted>"
        "<Error><Key>a/1</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error></DeleteResult>",
    ),
}
"""Answers that the server knows nothing of."""


class Request(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]

    @property
    def step(self) -> str:
        """Which of S3's calls it is."""
        if "uploads" in self.target:
            return "create"
        if "partNumber" in self.target:
            return "part"
        if "uploadId" in self.target:
            return "complete" if self.method == "POST" else "abort"
        if "delete" in self.target:
            return "delete"
        return "list" if "list-type" in self.target else self.method.lower()


Plan = Callable[[Request], Kind | None]


def always(kind: Kind, *steps: str) -> Plan:
    """At these of S3's calls, or at all."""
    return lambda request: kind if not steps or request.step in steps else None


def times(count: int, kind: Kind, *steps: str) -> Plan:
    """The first so many of these of S3's calls, or of all."""
    left = count

    def plan(request: Request) -> Kind | None:
        nonlocal left
        if left == 0 or (steps and request.step not in steps):
            return None
        left -= 1
        return kind

    return plan


@dataclass
class FaultyProxy:
    """Listens on a port of its own; `plan` may be replaced at any time."""

    server: tuple[str, int]
    plan: Plan | None = None
    seen: list[str] = field(default_factory=list)
    """The steps of all requests, in order."""
    spoilt: list[Kind] = field(default_factory=list)
    port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    _changed: trio.Condition = field(default_factory=trio.Condition)

    async def until(self, seen: Callable[[], bool]) -> None:
        """Returns when that is so of what has been seen and spoilt."""
        async with self._changed:
            while not seen():
                await self._changed.wait()

    async def serve(self, client: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            received = b""
            while b"\r\n\r\n" not in received:
                data = await client.receive_some(CHUNK)
                if not data:
                    return
                received += data
            head, _, body = received.partition(b"\r\n\r\n")
            request = _parse(head)
            self.seen.append(request.step)
            kind = self.plan(request) if self.plan is not None else None
            if kind is not None:
                self.spoilt.append(kind)
            async with self._changed:
                self._changed.notify_all()
            missing = int(request.headers.get("content-length", "0")) - len(body)
            await self._exchange(client, head, body, missing, kind)

    async def _exchange(
        self, client: trio.SocketStream, head: bytes, body: bytes, missing: int, kind: Kind | None
    ) -> None:
        if kind is Kind.HANG:
            await trio.sleep_forever()
        if kind in MADE_UP:
            while missing > 0:
                missing -= len(await client.receive_some(CHUNK))
            await client.send_all(MADE_UP[kind])
            return
        async with await trio.open_tcp_stream(*self.server) as server:
            await server.send_all(head + b"\r\nConnection: close\r\n\r\n")
            if kind is Kind.CUT_REQUEST:
                await server.send_all(body[: (len(body) + missing) // 2])
                return
            await server.send_all(body)
            while missing > 0:
                data = await client.receive_some(CHUNK)
                if not data:
                    return
                await server.send_all(data)
                missing -= len(data)
            await self._answer(client, server, kind)

    async def _answer(self, client: trio.SocketStream, server: trio.SocketStream, kind: Kind | None) -> None:
        answer = b""
        while data := await server.receive_some(CHUNK):
            if kind is None:
                await client.send_all(data)
            else:
                answer += data
        head, gap, body = answer.partition(b"\r\n\r\n")
        if kind is Kind.HANG_AFTER:
            await trio.sleep_forever()
        elif kind is Kind.CUT_HEAD:
            await client.send_all(head[: len(head) // 2])
        elif kind is Kind.CUT_ANSWER:
            await client.send_all(head + gap + body[: len(body) // 2])
        elif kind is Kind.TRICKLE:
            await client.send_all(head + gap)
            for at in range(0, len(body), 7):
                await client.send_all(body[at : at + 7])
                await trio.sleep(1)
        elif kind in (Kind.WHOLE, Kind.OTHER_RANGE, Kind.SHORT):
            await client.send_all(_falsified(kind, head, body))


def _falsified(kind: Kind, head: bytes, body: bytes) -> bytes:
    """The answer to a range, changed so that it still is an answer; other answers stay."""
    status, *lines = head.split(b"\r\n")
    if kind is Kind.WHOLE:
        status = status.replace(b"206 Partial Content", b"200 OK")
    elif kind is Kind.OTHER_RANGE:
        lines = [re.sub(rb"(?i)^(content-range: bytes )\d+", rb"\g<1>0", line) for line in lines]
    elif b" 206 " in status:
        body = body[: len(body) // 2]
        lines = [re.sub(rb"(?i)^(content-length: )\d+", b"\\g<1>%d" % len(body), line) for line in lines]
    return b"\r\n".join([status, *lines, b"", body])


def _parse(head: bytes) -> Request:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines)
    return Request(method, target, {name.strip().lower(): value.strip() for name, _, value in pairs})


@asynccontextmanager
async def faulty_proxy(host: str, port: int) -> AsyncIterator[FaultyProxy]:
    proxy = FaultyProxy((host, port))
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, proxy.serve, 0, host="127.0.0.1"))
        proxy.port = listeners[0].socket.getsockname()[1]
        yield proxy
        nursery.cancel_scope.cancel()
