"""Connections that do nothing: what they cost, and what the others notice."""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from struct import pack, unpack

import trio

from benchmarks.loads import create_topic
from benchmarks.process import cpu_seconds, resident_mb
from benchmarks.steps import Figures, StartBroker, Step, started
from benchmarks.watcher import producing
from kwire.client.connection import Connection
from kwire.ports.tcp import TcpTransport
from kwire.protocol import codec
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.headers import RequestHeader, encode_request_header
from kwire.protocol.messages.api_versions import ApiVersionsRequest
from kwire.protocol.messages.metadata import MetadataRequest

COUNTS = (10, 1_000, 5_000)
_TOPIC = "beside"
_RATE = 200
_ASKED = 500
_SETTLE_S = 3.0
_IDLE_S = 10.0
_PATIENCE_S = 60.0


def steps() -> list[Step]:
    return [Step(f"{count:,} idle connections", _measure(count), quick=count == 1_000) for count in COUNTS]


def _measure(count: int) -> Callable[[StartBroker], Figures]:
    def measure(make: StartBroker) -> Figures:
        with ExitStack() as stack:
            broker = stack.enter_context(started(make))
            create_topic(broker.bootstrap, _TOPIC, 1)
            host, port = broker.bootstrap.rsplit(":", 1)
            time.sleep(_SETTLE_S)
            empty = resident_mb(broker.pid)
            began = time.perf_counter()
            for _ in range(count):
                stack.enter_context(_client(host, int(port)))
            seconds = time.perf_counter() - began
            time.sleep(_SETTLE_S)
            grown = resident_mb(broker.pid) - empty
            before = cpu_seconds(broker.pid)
            time.sleep(_IDLE_S)
            idle = (cpu_seconds(broker.pid) - before) / _IDLE_S
            with producing(broker.bootstrap, _TOPIC, _RATE) as acks:
                time.sleep(_IDLE_S)
            return {
                "ms to open one": seconds / count * 1000,
                "KB each": grown * 1000 / count,
                "CPU % idle": idle * 100,
                "ms for Metadata, p50": trio.run(_metadata, host, int(port)),
                "ms to an acknowledgement, p99": acks.p99,
            }

    return measure


def _client(host: str, port: int) -> socket.socket:
    """A connection that has asked what every client asks first."""
    connection = socket.create_connection((host, port), _PATIENCE_S)
    request = ApiVersionsRequest(client_software_name="idle", client_software_version="1")
    body = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 3, 1, "idle")) + codec.encode(request, 3)
    connection.sendall(pack(">i", len(body)) + body)
    with connection.makefile("rb") as answers:
        (size,) = unpack(">i", answers.read(4))
        answers.read(size)
    return connection


async def _metadata(host: str, port: int) -> float:
    """ms, in the middle of many."""
    connection = await Connection.open(TcpTransport(), host, port)
    waits = []
    for _ in range(_ASKED):
        began = time.perf_counter()
        await connection.call(MetadataRequest(topics=None))
        waits.append((time.perf_counter() - began) * 1000)
    connection.close()
    return statistics.median(waits)
