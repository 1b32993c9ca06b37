"""How long a record takes: to its acknowledgement, and to a consumer; alone, and beside a load."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from benchmarks.loads import Produce, new_topic, records_in
from benchmarks.process import cpu_seconds
from benchmarks.steps import Figures, OnBroker, Steady, Step, cost, fresh
from benchmarks.watcher import Spread, arriving, producing

RATE = 1_000
"""Records a second, acks 1, linger.ms 0, one partition."""
_SIZE = 100
"""Bytes of a record, the others' too."""
BESIDE = Produce(1 << 30, _SIZE, 6, "1")
_FRESH_BESIDE, _STEADY_BESIDE = 100_000, 600_000
"""Records a second: half of what Apache Kafka takes of such records in the README's table."""
_WARM_UP_S = 5.0
_QUICK_S, _FULL_S = 20.0, 720.0
"""Of one measurement; five of the long ones, which are of steady brokers only, are an hour."""


def steps(steady: Steady, *, full: bool) -> list[Step]:
    alone, beside = f"latency at {RATE:,} records/s", "latency beside {:,} records/s"
    seconds = _FULL_S if full else _QUICK_S
    return [
        Step(f"fresh: {alone}", fresh(_measure(_QUICK_S)), quick=True),
        Step(f"steady: {alone}", steady.step(_measure(seconds)), quick=True),
        Step(f"fresh: {beside.format(_FRESH_BESIDE)}", fresh(_measure(_QUICK_S, _FRESH_BESIDE))),
        Step(f"steady: {beside.format(_STEADY_BESIDE)}", steady.step(_measure(seconds, _STEADY_BESIDE))),
    ]


def _measure(seconds: float, beside: int = 0) -> OnBroker:
    def measure(broker: Any) -> Figures:
        topic = new_topic(broker.bootstrap, 1)
        with ExitStack() as stack:
            if beside:
                other = new_topic(broker.bootstrap, BESIDE.partitions)
                stack.enter_context(BESIDE.beside(broker.bootstrap, other, beside))
            with producing(broker.bootstrap, topic, RATE):
                time.sleep(_WARM_UP_S)
            others = records_in(broker.bootstrap, other, BESIDE.partitions) if beside else 0
            before, began = cpu_seconds(broker.pid), time.monotonic()
            with arriving(broker.bootstrap, topic) as ages, producing(broker.bootstrap, topic, RATE) as acks:
                time.sleep(seconds)
            cpu, lasted = cpu_seconds(broker.pid) - before, time.monotonic() - began
            others = records_in(broker.bootstrap, other, BESIDE.partitions) - others if beside else 0
        return {
            **_told("to the acknowledgement", acks),
            **_told("to the consumer", ages),
            **({"records/s beside": others / lasted} if beside else {}),
            "CPU s per s": cpu / lasted,
            **cost(cpu, int(seconds * RATE) + others, _SIZE),
        }

    return measure


def _told(way: str, spread: Spread) -> Figures:
    return {f"ms {way}, p50": spread.p50, f"ms {way}, p99": spread.p99, f"ms {way}, p99.9": spread.p999}
