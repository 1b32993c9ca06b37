"""Many consumers of one topic, and one that catches up on cold data while another reads the newest."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.group_coordinator import await_coordinator
from benchmarks.loads import Produce, consume, new_topic
from benchmarks.process import cpu_seconds, forget_cached
from benchmarks.steps import Figures, OnBroker, RunProduce, Steady, Step, cost, fresh
from benchmarks.watcher import passing

CONSUMERS = 20
SHARED = Produce(100_000, 1024, 6, "1", batch_size=65536)
QUICK_MB, FULL_MB = 1_000, 10_000
"""Of cold data."""
_TAIL_RATE = 500


def steps(steady: Steady, *, full: bool) -> list[Step]:
    megabytes = FULL_MB if full else QUICK_MB
    found = []
    for name, measure in (
        (f"{CONSUMERS} consumers of one topic", _fan_out),
        (f"catch up on {megabytes:,} MB of cold data", partial(_catch_up, megabytes)),
    ):
        found.append(Step(f"fresh: {name}", fresh(measure(Produce.run)), quick=measure is _fan_out))
        found.append(Step(f"steady: {name}", steady.step(measure(steady.producer.run))))
    return found


def _fan_out(run: RunProduce) -> OnBroker:
    def measure(broker: Any) -> Figures:
        topic = new_topic(broker.bootstrap, SHARED.partitions)
        run(SHARED, broker.bootstrap, topic)
        await_coordinator(broker.bootstrap)
        before = cpu_seconds(broker.pid)
        rate = consume(broker.bootstrap, topic, SHARED.partitions, SHARED.records, CONSUMERS)
        cpu = cpu_seconds(broker.pid) - before
        return {"consumed records/s, all together": rate, **cost(cpu, SHARED.records * CONSUMERS, SHARED.size)}

    return measure


def _catch_up(megabytes: int, run: RunProduce) -> OnBroker:
    cold = Produce(megabytes * 1_000_000 // 1024, 1024, 6, "1", batch_size=65536)

    def measure(broker: Any) -> Figures:
        topic, tail = new_topic(broker.bootstrap, cold.partitions), new_topic(broker.bootstrap, 1)
        run(cold, broker.bootstrap, topic)
        await_coordinator(broker.bootstrap)
        forget_cached(Path(broker.data_dir))
        with passing(broker.bootstrap, tail, _TAIL_RATE) as (ages, _):
            before = cpu_seconds(broker.pid)
            rate = consume(broker.bootstrap, topic, cold.partitions, cold.records)
            cpu = cpu_seconds(broker.pid) - before
        return {
            "MB/s read": rate * cold.size / 1e6,
            **cost(cpu, cold.records, cold.size),
            "ms from the tail's producer to its consumer, p50": ages.p50,
            "ms from the tail's producer to its consumer, p99": ages.p99,
        }

    return measure
