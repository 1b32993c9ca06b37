"""How long a broker takes to tell all of its topics."""

from __future__ import annotations

import statistics
import time

import trio

from kwire.client.connection import Connection
from kwire.ports.tcp import TcpTransport
from kwire.protocol.messages.metadata import MetadataRequest

_ASKED_S = 2.0
_ASKED = 50
"""So often at least."""


def metadata_ms(bootstrap: str) -> float:
    """ms from the request to its decoded answer, in the middle of many; what decoding takes is the same for each
    broker."""
    return trio.run(_metadata, *bootstrap.rsplit(":", 1))


async def _metadata(host: str, port: str) -> float:
    connection = await Connection.open(TcpTransport(), host, int(port))
    waits = []
    ends = time.perf_counter() + _ASKED_S
    while len(waits) < _ASKED or time.perf_counter() < ends:
        began = time.perf_counter()
        await connection.call(MetadataRequest(topics=None))
        waits.append((time.perf_counter() - began) * 1000)
    connection.close()
    return statistics.median(waits)
