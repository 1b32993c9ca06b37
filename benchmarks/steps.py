"""What is measured: each step takes a kind of broker and gives figures by name."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.first_produce import produce_first
from benchmarks.group_coordinator import await_coordinator
from benchmarks.lasting_producer import LastingProducer
from benchmarks.loads import Produce, Sent, consume, delete_topics, new_topic
from benchmarks.process import cpu_seconds, forget_peak, peak_mb, resident_mb
from benchmarks.readiness import make_ready

Figures = dict[str, float]
StartBroker = Callable[[], Any]
"""Makes a broker that is not started: `start`, `close`, `bootstrap`, `pid` (BrokerProcess or ApacheKafka)."""
OnBroker = Callable[[Any], Figures]
"""Measures a broker that runs."""
RunProduce = Callable[[Produce, str, str], Sent]
"""Sends a load to a bootstrap address and a topic."""

_SETTLE_S = 3.0
"""After the start, before idle memory is read: what starting left to do is done by then."""

_DELETED_AFTER_MS = 1000
_DELETED_WITHIN_S = 120.0
_OF_A_CLIENT = re.compile(r"(?!__).*-(\d+|delete)")
"""The folders of partitions that clients made, or that were deleted."""


@dataclass(frozen=True, slots=True)
class Step:
    """`measure(make)` starts what it needs with `make()`."""

    name: str
    measure: Callable[[StartBroker], Figures]
    quick: bool = False
    """Whether it is one of those that are measured unless more is asked for."""
    prepare: Callable[[StartBroker], None] | None = None
    """Called once before the first pair, with what makes the brokers that kwire is measured beside."""


@contextmanager
def started(make: StartBroker, config: Mapping[str, object] | None = None) -> Iterator[Any]:
    """A broker that runs within, with these settings by Kafka's names."""
    broker = make()
    broker.config.update(config or {})
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def start_and_idle(make: StartBroker) -> Figures:
    """Seconds from exec to the first acknowledged produce, CPU seconds spent by then, and resident MB when idle."""
    broker = make()
    try:
        started = time.monotonic()
        broker.start()
        host, port = broker.bootstrap.rsplit(":", 1)
        produce_first(host, int(port), "first", started + 60)
        seconds, cpu = time.monotonic() - started, cpu_seconds(broker.pid)
        time.sleep(_SETTLE_S)
        idle = resident_mb(broker.pid)
        return {
            "s to first ack": seconds,
            "CPU s to first ack": cpu,
            "MB idle": idle,
            "MB at most": peak_mb(broker.pid),
        }
    finally:
        broker.close()


def fresh(measure: OnBroker, config: Mapping[str, object] | None = None) -> Callable[[StartBroker], Figures]:
    """In the first minute of a broker's life, with these settings by Kafka's names."""

    def on_one(make: StartBroker) -> Figures:
        with started(make, config) as broker:
            return _with_memory(measure, broker)

    return on_one


def _with_memory(measure: OnBroker, broker: Any) -> Figures:
    figures = measure(broker)
    figures.setdefault("MB at most", peak_mb(broker.pid))
    return figures


def produce_and_consume(load: Produce, run: RunProduce = Produce.run, warm_up: int = 0) -> OnBroker:
    """The load, which `run` runs, after `warm_up` records like it that do not count, and reading all of them back."""

    def measure(broker: Any) -> Figures:
        topic = new_topic(broker.bootstrap, load.partitions, load.topic_config)
        if warm_up:
            run(replace(load, records=warm_up), broker.bootstrap, topic)
        before = cpu_seconds(broker.pid)
        sent = run(load, broker.bootstrap, topic)
        spent = cpu_seconds(broker.pid) - before
        await_coordinator(broker.bootstrap)
        before, read = cpu_seconds(broker.pid), warm_up + load.records
        consumed = consume(broker.bootstrap, topic, load.partitions, read)
        spent_reading = cpu_seconds(broker.pid) - before
        return {
            "produced records/s": sent.records_per_s,
            "ms produced, p50": sent.p50_ms,
            "ms produced, p99": sent.p99_ms,
            "ms produced, p99.9": sent.p999_ms,
            **cost(spent, load.records, load.size, " produced"),
            "consumed records/s": consumed,
            **cost(spent_reading, read, load.size, " consumed"),
        }

    return measure


def cost(cpu: float, records: int, size: int, done: str = "") -> Figures:
    """What `cpu` seconds are for so many records of `size` bytes that were `done`."""
    return {f"CPU s per M{done}": cpu / records * 1e6, f"CPU s per GB{done}": cpu / (records * size) * 1e9}


def _remove_topics(broker: Any) -> None:
    """Deletes the topics that clients made, and waits until their files are gone: the disk would be busy with
    gigabytes of them while the next side is measured. Raises RuntimeError where they stay."""
    delete_topics(broker.bootstrap)
    deadline = time.monotonic() + _DELETED_WITHIN_S
    while left := [entry.name for entry in Path(broker.data_dir).iterdir() if _OF_A_CLIENT.fullmatch(entry.name)]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not removed within {_DELETED_WITHIN_S:.0f} s: {left}")
        time.sleep(0.1)


class Steady:
    """Brokers that live on from step to step, each warmed by millions of records before it is measured, and a producer
    that lives as long."""

    def __init__(self, warm_up_records: int) -> None:
        self._warm_up = warm_up_records
        self._brokers: dict[int, Any] = {}
        self.producer = LastingProducer()

    def step(self, measure: OnBroker) -> Callable[[StartBroker], Figures]:
        """`measure` gets a broker that it may have measured before: its topics are new ones (`new_topic`), which are
        deleted after it."""

        def on_one(make: StartBroker) -> Figures:
            broker = self._brokers.get(id(make))
            if broker is None:
                broker = self._brokers[id(make)] = make()
                broker.config["log.segment.delete.delay.ms"] = _DELETED_AFTER_MS
                broker.start()
                self._warm(broker)
            forget_peak(broker.pid)
            figures = _with_memory(measure, broker)
            _remove_topics(broker)  # all steps together would take a hundred GB
            return figures

        return on_one

    def close(self) -> None:
        for broker in self._brokers.values():
            broker.close()
        self._brokers.clear()
        self.producer.close()

    def _warm(self, broker: Any) -> None:
        for partitions in (1, 6):
            topic = new_topic(broker.bootstrap, partitions)
            self.producer.run(Produce(self._warm_up // 2, 100, partitions, "1"), broker.bootstrap, topic)
            consume(broker.bootstrap, topic, partitions, self._warm_up // 2)
        _remove_topics(broker)
        make_ready()  # as before each measurement (disturbance.py): this one began before the warming
