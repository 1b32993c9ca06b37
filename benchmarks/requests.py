"""Small requests, acknowledged one by one over few connections and over many: in memory, and on the disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing

from benchmarks.loads import create_topic
from benchmarks.process import cpu_seconds
from benchmarks.raw import Producers
from benchmarks.steps import Figures, StartBroker, Step, started

_TOPIC = "small"
_WARM_UP_S = 2.0
_MEASURED_S = 5.0
_FLUSHED = {"log.flush.interval.messages": "1"}


def steps() -> list[Step]:
    """Records one by one from 1, 50 and 500 connections; and batches of 10 that are on the disk when acknowledged."""
    return [
        *(
            Step(f"one record a request, connections: {count}", _measure(count, 1, {}), quick=count == 50)
            for count in (1, 50, 500)
        ),
        *(
            Step(f"flush.messages=1, connections: {count}", _measure(count, 10, _FLUSHED), quick=count == 10)
            for count in (1, 10, 50)
        ),
    ]


def _measure(connections: int, records: int, config: Mapping[str, str]) -> Callable[[StartBroker], Figures]:
    def measure(make: StartBroker) -> Figures:
        with started(make, config) as broker:
            create_topic(broker.bootstrap, _TOPIC, 1)
            with closing(Producers(broker.bootstrap, _TOPIC, connections, records=records)) as producers:
                producers.run(_WARM_UP_S)
                before = cpu_seconds(broker.pid)
                waits = sorted(producers.run(_MEASURED_S))
            cpu = cpu_seconds(broker.pid) - before
            return {
                "acknowledged requests/s": len(waits) / _MEASURED_S,
                "ms to the acknowledgement, p50": waits[len(waits) // 2] * 1000,
                "ms to the acknowledgement, p99": waits[int(len(waits) * 0.99)] * 1000,
                "CPU s per 1,000 requests": cpu / len(waits) * 1000,
            }

    return measure
