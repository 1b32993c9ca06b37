"""Many consumers of one topic, and one that catches up on cold data while another reads the newest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.loads import Produce, consume, new_topic
from benchmarks.process import cpu_seconds, forget_cached
from benchmarks.steps import Figures, Step, cost, fresh
from benchmarks.watcher import arriving, producing

CONSUMERS = 20
SHARED = Produce(100_000, 1024, 6, "1", batch_size=65536)
QUICK_MB, FULL_MB = 1_000, 10_000
"""Of cold data."""
_TAIL_RATE = 500


def steps(*, full: bool) -> list[Step]:
    megabytes = FULL_MB if full else QUICK_MB
    return [
        Step(f"{CONSUMERS} consumers of one topic", fresh(_fan_out), quick=True),
        Step(f"catch up on {megabytes:,} MB of cold data", fresh(lambda broker: _catch_up(broker, megabytes))),
    ]


def _fan_out(broker: Any) -> Figures:
    topic = new_topic(broker.bootstrap, SHARED.partitions)
    SHARED.run(broker.bootstrap, topic)
    before = cpu_seconds(broker.pid)
    rate = consume(broker.bootstrap, topic, SHARED.partitions, SHARED.records, CONSUMERS)
    cpu = cpu_seconds(broker.pid) - before
    return {"consumed records/s, all together": rate, **cost(cpu, SHARED.records * CONSUMERS, SHARED.size)}


def _catch_up(broker: Any, megabytes: int) -> Figures:
    cold = Produce(megabytes * 1_000_000 // 1024, 1024, 6, "1", batch_size=65536)
    topic, tail = new_topic(broker.bootstrap, cold.partitions), new_topic(broker.bootstrap, 1)
    cold.run(broker.bootstrap, topic)
    forget_cached(Path(broker.data_dir))
    with arriving(broker.bootstrap, tail) as ages, producing(broker.bootstrap, tail, _TAIL_RATE):
        before = cpu_seconds(broker.pid)
        rate = consume(broker.bootstrap, topic, cold.partitions, cold.records)
        cpu = cpu_seconds(broker.pid) - before
    return {
        "MB/s read": rate * cold.size / 1e6,
        **cost(cpu, cold.records, cold.size),
        "ms from the tail's producer to its consumer, p50": ages.p50,
        "ms from the tail's producer to its consumer, p99": ages.p99,
    }
