"""How long a broker takes to tell all of its topics."""

from __future__ import annotations

import statistics
import time

import trio

from benchmarks.client import connect
from kwire.protocol.messages.metadata import MetadataRequest

_ASKED_S = 2.0
_ASKED = 50
"""So often at least."""


def metadata_ms(bootstrap: str) -> float:
    """ms from the request to its decoded answer, in the middle of many; what decoding takes is the same for each
    broker."""
    return trio.run(_metadata, bootstrap)


async def _metadata(bootstrap: str) -> float:
    connection = await connect(bootstrap)
    waits = []
    ends = time.perf_counter() + _ASKED_S
    while len(waits) < _ASKED or time.perf_counter() < ends:
        began = time.perf_counter()
        await connection.call(MetadataRequest(topics=None))
        waits.append((time.perf_counter() - began) * 1000)
    connection.close()
    return statistics.median(waits)
