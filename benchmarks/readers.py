"""Many consumers of one topic, and one that catches up on cold data while another reads the newest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.loads import Produce, consume, create_topic
from benchmarks.process import cpu_seconds, forget_cached, peak_mb
from benchmarks.steps import Figures, StartBroker, Step, started
from benchmarks.watcher import arriving, producing

CONSUMERS = 20
SHARED = Produce(100_000, 1024, 6, "1", batch_size=65536)
QUICK_MB, FULL_MB = 1_000, 10_000
"""Of cold data."""
_TOPIC, _TAIL = "read", "tail"
_TAIL_RATE = 500


def steps(*, full: bool) -> list[Step]:
    megabytes = FULL_MB if full else QUICK_MB
    return [
        Step(f"{CONSUMERS} consumers of one topic", _on_broker(_fan_out), quick=True),
        Step(f"catch up on {megabytes:,} MB of cold data", _on_broker(lambda broker: _catch_up(broker, megabytes))),
    ]


def _on_broker(measure: Callable[[Any], Figures]) -> Callable[[StartBroker], Figures]:
    def on_one(make: StartBroker) -> Figures:
        with started(make) as broker:
            return measure(broker)

    return on_one


def _fan_out(broker: Any) -> Figures:
    create_topic(broker.bootstrap, _TOPIC, SHARED.partitions)
    SHARED.run(broker.bootstrap, _TOPIC)
    before = cpu_seconds(broker.pid)
    rate = consume(broker.bootstrap, _TOPIC, SHARED.partitions, SHARED.records, CONSUMERS)
    cpu = cpu_seconds(broker.pid) - before
    return {
        "consumed records/s, all together": rate,
        "CPU s per GB": cpu / (SHARED.records * SHARED.size * CONSUMERS / 1e9),
        "MB at most": peak_mb(broker.pid),
    }


def _catch_up(broker: Any, megabytes: int) -> Figures:
    cold = Produce(megabytes * 1_000_000 // 1024, 1024, 6, "1", batch_size=65536)
    create_topic(broker.bootstrap, _TOPIC, cold.partitions)
    create_topic(broker.bootstrap, _TAIL, 1)
    cold.run(broker.bootstrap, _TOPIC)
    forget_cached(Path(broker.data_dir))
    with arriving(broker.bootstrap, _TAIL) as ages, producing(broker.bootstrap, _TAIL, _TAIL_RATE):
        before = cpu_seconds(broker.pid)
        rate = consume(broker.bootstrap, _TOPIC, cold.partitions, cold.records)
        cpu = cpu_seconds(broker.pid) - before
    return {
        "MB/s read": rate * cold.size / 1e6,
        "CPU s per GB": cpu / (cold.records * cold.size / 1e9),
        "ms from the tail's producer to its consumer, p50": ages.p50,
        "ms from the tail's producer to its consumer, p99": ages.p99,
        "MB at most": peak_mb(broker.pid),
    }
