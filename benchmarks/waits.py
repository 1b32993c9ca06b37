"""`python -m benchmarks.waits BOOTSTRAP`: asks a broker something small again and again until its input ends.

Prints a line when it begins and at the end "P99 LONGEST", in ms: how long the answers took.
"""

from __future__ import annotations

import sys
import time

import trio

from benchmarks.client import connect
from benchmarks.quantile import quantile
from kwire.protocol.messages.list_offsets import ListOffsetsRequest

_PAUSE_S = 0.001


async def main(bootstrap: str) -> None:
    connection = await connect(bootstrap)
    waits: list[float] = []
    over = trio.Event()

    async def until_told() -> None:
        await trio.to_thread.run_sync(sys.stdin.readline)
        over.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_told)
        print("begun", flush=True)
        while not over.is_set():
            started = time.perf_counter()
            await connection.call(ListOffsetsRequest(replica_id=-1, topics=[]))
            waits.append((time.perf_counter() - started) * 1000)
            await trio.sleep(_PAUSE_S)
    waits.sort()
    print(quantile(waits, 0.99), waits[-1])


trio.run(main, sys.argv[1])
