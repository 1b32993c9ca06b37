"""Small requests, acknowledged one by one over few connections and over many: in memory, and on the disk."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

from benchmarks.loads import new_topic
from benchmarks.process import cpu_seconds
from benchmarks.quantile import quantile
from benchmarks.raw import Producers
from benchmarks.steps import Figures, OnBroker, Steady, Step, cost, fresh

_SIZE = 100
_WARM_UP_S = 2.0
_MEASURED_S = 5.0
_FLUSHED = {"log.flush.interval.messages": "1"}


def steps(steady: Steady) -> list[Step]:
    """Records one by one from 1, 50 and 500 connections; and batches of 10 that are on the disk when acknowledged."""
    found = []
    for count in (1, 50, 500):
        name, measure = f"one record a request, connections: {count}", _measure(count, 1)
        found.append(Step(f"fresh: {name}", fresh(measure), quick=count == 50))
        found.append(Step(f"steady: {name}", steady.step(measure), quick=count == 50))
    for count in (1, 10, 50):
        found.append(Step(f"flush.messages=1, connections: {count}", fresh(_measure(count, 10), _FLUSHED)))
    return found


def _measure(connections: int, records: int) -> OnBroker:
    def measure(broker: Any) -> Figures:
        topic = new_topic(broker.bootstrap, 1)
        with closing(Producers(broker.bootstrap, topic, connections, records=records, size=_SIZE)) as producers:
            producers.run(_WARM_UP_S)
            before, own, began = cpu_seconds(broker.pid), time.process_time(), time.monotonic()
            waits = sorted(producers.run(_MEASURED_S))
            lasted = time.monotonic() - began  # until the last of them was answered
            own = time.process_time() - own
        cpu = cpu_seconds(broker.pid) - before
        return {
            "acknowledged requests/s": len(waits) / lasted,
            "ms to the acknowledgement, p50": quantile(waits, 0.5) * 1000,
            "ms to the acknowledgement, p99": quantile(waits, 0.99) * 1000,
            "ms to the acknowledgement, p99.9": quantile(waits, 0.999) * 1000,
            "CPU s per 1,000 requests": cpu / len(waits) * 1000,
            **cost(cpu, len(waits) * records, _SIZE),
            "client's CPU µs per request": own / len(waits) * 1e6,
        }

    return measure
