"""Connections that do nothing: what they cost, and what the others notice."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import Any

from benchmarks.frames import encoded, received
from benchmarks.loads import new_topic
from benchmarks.metadata import metadata_ms
from benchmarks.process import cpu_seconds, resident_mb
from benchmarks.steps import Figures, OnBroker, Step, cost, fresh
from benchmarks.watcher import RECORD_SIZE, producing
from kwire.protocol.messages.api_versions import ApiVersionsRequest

COUNTS = (10, 1_000, 5_000)
_MANY = 1_000
"""From so many on what one takes can be told apart from what else a broker takes meanwhile."""
_RATE = 200
_SETTLE_S = 3.0
_IDLE_S = 10.0
_PATIENCE_S = 60.0


def steps() -> list[Step]:
    return [Step(f"{count:,} idle connections", fresh(_measure(count))) for count in COUNTS]


def _measure(count: int) -> OnBroker:
    def measure(broker: Any) -> Figures:
        topic = new_topic(broker.bootstrap, 1)
        host, port = broker.bootstrap.rsplit(":", 1)
        time.sleep(_SETTLE_S)
        empty = resident_mb(broker.pid)
        with ExitStack() as stack:
            began = time.perf_counter()
            for _ in range(count):
                stack.enter_context(_client(host, int(port)))
            seconds = time.perf_counter() - began
            time.sleep(_SETTLE_S)
            resident = resident_mb(broker.pid)
            before = cpu_seconds(broker.pid)
            time.sleep(_IDLE_S)
            idle = (cpu_seconds(broker.pid) - before) / _IDLE_S
            before = cpu_seconds(broker.pid)
            with producing(broker.bootstrap, topic, _RATE) as acks:
                time.sleep(_IDLE_S)
            spent = cpu_seconds(broker.pid) - before
            each = {"KB each": (resident - empty) * 1000 / count} if count >= _MANY else {}
            return {
                "ms to open one": seconds / count * 1000,
                "MB resident": resident,
                **each,
                "CPU % idle": idle * 100,
                "ms for Metadata, p50": metadata_ms(broker.bootstrap),
                "ms to an acknowledgement, p99": acks.p99,
                **cost(spent, acks.count, RECORD_SIZE),
            }

    return measure


def _client(host: str, port: int) -> socket.socket:
    """A connection that has asked what every client asks first."""
    connection = socket.create_connection((host, port), _PATIENCE_S)
    request = ApiVersionsRequest(client_software_name="idle", client_software_version="1")
    connection.sendall(encoded(request, 3))
    received(connection)
    return connection
