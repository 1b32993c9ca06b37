"""How long a record takes: to its acknowledgement, and to a consumer; alone, and beside a load."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.loads import Produce, create_topic
from benchmarks.process import cpu_seconds
from benchmarks.steps import Figures, StartBroker, Step, started
from benchmarks.watcher import Spread, arriving, producing

RATE = 1_000
"""Records a second, acks 1, linger.ms 0, one partition."""
BESIDE = Produce(1 << 30, 100, 6, "1")
BESIDE_RATE = 90_000
"""Records a second: half of what a fresh Apache Kafka takes of such records in the README's table."""
_TOPIC, _OTHER = "latency", "load"
_WARM_UP_S = 5.0
_QUICK_S, _FULL_S = 20.0, 720.0
"""Of one measurement; five of the long ones are an hour."""


def steps(*, full: bool) -> list[Step]:
    seconds = _FULL_S if full else _QUICK_S
    return [
        Step(f"latency at {RATE:,} records/s", _measure(seconds, beside=False), quick=True),
        Step(f"latency beside {BESIDE_RATE:,} records/s", _measure(seconds, beside=True), quick=True),
    ]


def _measure(seconds: float, *, beside: bool) -> Callable[[StartBroker], Figures]:
    def measure(make: StartBroker) -> Figures:
        with started(make) as broker:
            create_topic(broker.bootstrap, _TOPIC, 1)
            create_topic(broker.bootstrap, _OTHER, BESIDE.partitions)
            with ExitStack() as stack:
                if beside:
                    stack.enter_context(BESIDE.beside(broker.bootstrap, _OTHER, BESIDE_RATE))
                with producing(broker.bootstrap, _TOPIC, RATE):
                    time.sleep(_WARM_UP_S)
                before = cpu_seconds(broker.pid)
                with arriving(broker.bootstrap, _TOPIC) as ages, producing(broker.bootstrap, _TOPIC, RATE) as acks:
                    time.sleep(seconds)
                cpu = cpu_seconds(broker.pid) - before
            return {
                **_told("to the acknowledgement", acks),
                **_told("to the consumer", ages),
                "CPU s per s": cpu / seconds,
            }

    return measure


def _told(way: str, spread: Spread) -> Figures:
    return {f"ms {way}, p50": spread.p50, f"ms {way}, p99": spread.p99, f"ms {way}, p99.9": spread.p999}
