"""How long a record takes: to its acknowledgement, and to a consumer; alone, and beside a load."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from benchmarks.group_coordinator import await_coordinator
from benchmarks.loads import Produce, new_topic, records_in
from benchmarks.process import cpu_seconds
from benchmarks.steps import Figures, OnBroker, RunProduce, StartBroker, Steady, Step, cost, fresh
from benchmarks.watcher import Spread, passing, producing

RATE = 1_000
"""Records a second, acks 1, linger.ms 0, one partition."""
_SIZE = 100
"""Bytes of a record, the others' too."""
BESIDE = Produce(1 << 30, _SIZE, 6, "1")
_FRESH_CAPACITY, _STEADY_CAPACITY = (
    Produce(1_000_000, _SIZE, 6, "1"),
    Produce(2_500_000, _SIZE, 6, "1"),
)
"""What of such records a broker takes a second is found with these."""
_WARM_UP_S = 5.0
QUICK_S, FULL_S = 20.0, 720.0
"""Of one measurement; five of the long ones, which are of steady brokers only, are an hour."""


def steps(steady: Steady, seconds: float) -> list[Step]:
    """`seconds` is how long each measurement of a steady broker is."""
    alone, beside = f"latency at {RATE:,} records/s", "latency beside half a load"
    half_fresh = HalfLoad(fresh, _FRESH_CAPACITY, Produce.run)
    half_steady = HalfLoad(steady.step, _STEADY_CAPACITY, steady.producer.run, runs=2)
    return [
        Step(f"fresh: {alone}", fresh(_measure(QUICK_S)), quick=True),
        Step(f"steady: {alone}", steady.step(_measure(seconds)), quick=True),
        Step(f"fresh: {beside}", fresh(_measure(QUICK_S, half_fresh)), prepare=half_fresh.find),
        Step(f"steady: {beside}", steady.step(_measure(seconds, half_steady)), prepare=half_steady.find),
    ]


class HalfLoad:
    """Half of the records a second that Apache Kafka takes, or whatever kwire is measured beside, on this machine.

    `run` sends it `capacity`, `on_broker` says to which broker; the last of so many `runs` counts.
    """

    def __init__(
        self,
        on_broker: Callable[[OnBroker], Callable[[StartBroker], Figures]],
        capacity: Produce,
        run: RunProduce,
        runs: int = 1,
    ) -> None:
        self._on_broker = on_broker
        self._capacity = capacity
        self._run = run
        self._runs = runs
        self.rate = 0
        """Records a second, the same for both sides; known when `find` is done."""

    def find(self, make: StartBroker) -> None:
        """Measures what a broker takes that `make` makes."""
        self.rate = int(self._on_broker(self._taken)(make)["records/s"] / 2)

    def _taken(self, broker: Any) -> Figures:
        topic = new_topic(broker.bootstrap, self._capacity.partitions)
        rates = [self._run(self._capacity, broker.bootstrap, topic).records_per_s for _ in range(self._runs)]
        return {"records/s": rates[-1]}


def _measure(seconds: float, beside: HalfLoad | None = None) -> OnBroker:
    def measure(broker: Any) -> Figures:
        topic = new_topic(broker.bootstrap, 1)
        await_coordinator(broker.bootstrap)
        with ExitStack() as stack:
            if beside is not None:
                other = new_topic(broker.bootstrap, BESIDE.partitions)
                stack.enter_context(BESIDE.beside(broker.bootstrap, other, beside.rate))
            with producing(broker.bootstrap, topic, RATE):
                time.sleep(_WARM_UP_S)
            others = 0 if beside is None else records_in(broker.bootstrap, other, BESIDE.partitions)
            before, began = cpu_seconds(broker.pid), time.monotonic()
            with passing(broker.bootstrap, topic, RATE) as (ages, acks):
                time.sleep(seconds)
            cpu, lasted = cpu_seconds(broker.pid) - before, time.monotonic() - began
            others = 0 if beside is None else records_in(broker.bootstrap, other, BESIDE.partitions) - others
        return {
            **_told("to the acknowledgement", acks),
            **_told("to the consumer", ages),
            **({} if beside is None else {"records/s beside": others / lasted}),
            "CPU s per s": cpu / lasted,
            **cost(cpu, acks.count + others, _SIZE),
        }

    return measure


def _told(way: str, spread: Spread) -> Figures:
    return {f"ms {way}, p50": spread.p50, f"ms {way}, p99": spread.p99, f"ms {way}, p99.9": spread.p999}
