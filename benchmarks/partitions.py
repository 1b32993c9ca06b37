"""Many partitions on one broker: their creation, starts after a clean stop and after kill -9, memory, files, and what
requests cost beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import trio

from benchmarks.creation import PATIENCE_S, create, write_each
from benchmarks.first_produce import produce_first
from benchmarks.metadata import metadata_ms
from benchmarks.process import cpu_seconds, open_files, peak_mb, resident_mb
from benchmarks.steps import Figures, StartBroker, cost
from benchmarks.watcher import RECORD_SIZE, producing, watching

PROBE = "probe"
"""A topic of one partition, to which the first record after a start is produced."""

_SETTLE_S = 3.0
_IDLE_S = 10.0
_RATE = 200
"""Requests of one record a second."""
_MANY = 100
"""With fewer partitions what memory has grown by is not theirs."""


def partitions(topics: int, each: int) -> Callable[[StartBroker], Figures]:
    """The life of a broker with `topics` topics of `each` partitions."""

    def measure(make: StartBroker) -> Figures:
        broker = make()
        try:
            return _Life(broker, [f"grown-{number}" for number in range(topics)], each).measure()
        finally:
            broker.close()

    return measure


class _Life:
    def __init__(self, broker: Any, topics: Sequence[str], each: int) -> None:
        self._broker = broker
        self._topics = topics
        self._each = each
        self._figures: Figures = {}
        self._empty_mb = 0.0

    def measure(self) -> Figures:
        broker, figures = self._broker, self._figures
        broker.start()
        trio.run(create, broker.bootstrap, [PROBE], 1)
        time.sleep(_SETTLE_S)
        self._empty_mb = resident_mb(broker.pid)
        with watching(broker.bootstrap) as waits:
            before, started = cpu_seconds(broker.pid), time.perf_counter()
            trio.run(create, broker.bootstrap, self._topics, self._each)
            figures["s until all are created"] = time.perf_counter() - started
            figures["CPU s"] = cpu_seconds(broker.pid) - before
            time.sleep(_SETTLE_S)
        figures["ms longest wait of another meanwhile"] = waits.longest
        self._note("new and empty")
        before = cpu_seconds(broker.pid)
        time.sleep(_IDLE_S)
        figures["CPU % idle"] = (cpu_seconds(broker.pid) - before) * 100 / _IDLE_S
        before = cpu_seconds(broker.pid)
        with producing(broker.bootstrap, PROBE, _RATE) as acks:
            time.sleep(_IDLE_S)
        spent = cpu_seconds(broker.pid) - before
        figures["CPU ms per request"] = spent * 1000 / acks.count
        figures |= cost(spent, acks.count, RECORD_SIZE)
        figures["ms to an acknowledgement, p50"] = acks.p50
        figures["ms to an acknowledgement, p99"] = acks.p99
        figures["ms for Metadata, p50"] = metadata_ms(broker.bootstrap)
        self._restart("empty, clean", broker.stop)
        self._restart("empty, kill -9", broker.kill)
        started = time.perf_counter()
        trio.run(write_each, broker.bootstrap, self._topics, self._each)
        figures["s to write a batch to each"] = time.perf_counter() - started
        self._note("a batch in each")
        figures["files open"] = open_files(broker.pid)
        self._restart("a batch in each, clean", broker.stop)
        self._note("started with a batch in each")
        self._restart("a batch in each, kill -9 without a write", broker.kill)
        trio.run(write_each, broker.bootstrap, self._topics, self._each)
        self._restart("a batch in each, kill -9 after a write to each", broker.kill)
        self._note_peak()
        return figures

    def _note_peak(self) -> None:
        """Before each end of the broker: it is of a process."""
        self._figures["MB at most"] = max(self._figures.get("MB at most", 0.0), peak_mb(self._broker.pid))

    def _note(self, state: str) -> None:
        time.sleep(_SETTLE_S)
        resident, count = resident_mb(self._broker.pid), len(self._topics) * self._each
        self._figures[f"MB resident, {state}"] = resident
        if count >= _MANY:
            self._figures[f"KB a partition, {state}"] = (resident - self._empty_mb) * 1000 / count

    def _restart(self, state: str, end: Callable[..., None]) -> None:
        """Ends the broker and starts it; the times are from exec."""
        broker = self._broker
        self._note_peak()
        started = time.perf_counter()
        if end == broker.stop:
            broker.stop(timeout=PATIENCE_S)
            self._figures[f"s to stop: {state}"] = time.perf_counter() - started
        else:
            end()
        started = time.perf_counter()
        broker.start(timeout=PATIENCE_S)
        self._figures[f"s to ready: {state}"] = time.perf_counter() - started
        host, port = broker.bootstrap.rsplit(":", 1)
        produce_first(host, int(port), PROBE, time.monotonic() + PATIENCE_S)
        self._figures[f"s to first ack: {state}"] = time.perf_counter() - started
        self._figures[f"CPU s to first ack: {state}"] = cpu_seconds(broker.pid)
