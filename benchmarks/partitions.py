"""Many partitions on one broker: their creation, starts after a clean stop and after kill -9, memory, files, and what
requests cost beside them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import trio

from benchmarks.client import connect
from benchmarks.first_produce import produce_first
from benchmarks.metadata import metadata_ms
from benchmarks.process import cpu_seconds, open_files, peak_mb, resident_mb
from benchmarks.steps import Figures, StartBroker, cost
from benchmarks.watcher import RECORD_SIZE, producing, watching
from kwire.client.connection import Connection
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record

PROBE = "probe"
"""A topic of one partition, to which the first record after a start is produced."""

_PATIENCE_S = 300.0
_SETTLE_S = 3.0
_IDLE_S = 10.0
_RATE = 200
"""Requests of one record a second."""
_MANY = 100
"""With fewer partitions what memory has grown by is not theirs."""
_AT_ONCE = 500
"""Partitions in one produce request."""

_MOST_CREATED = 5_000
"""Partitions in one request: Apache Kafka writes at most 10,000 records of metadata for one."""

_BY_NAME = 12
"""The newest version of Produce that names topics."""

_PAUSE_S = 0.02


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
        self._batch = build_batch([Record(0, int(time.time() * 1000), None, b"x" * 100, [])])

    def measure(self) -> Figures:
        broker, figures = self._broker, self._figures
        broker.start()
        trio.run(self._create, [PROBE], 1)
        time.sleep(_SETTLE_S)
        self._empty_mb = resident_mb(broker.pid)
        with watching(broker.bootstrap) as waits:
            before, started = cpu_seconds(broker.pid), time.perf_counter()
            trio.run(self._create, self._topics, self._each)
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
        trio.run(self._write_each)
        figures["s to write a batch to each"] = time.perf_counter() - started
        self._note("a batch in each")
        figures["files open"] = open_files(broker.pid)
        self._restart("a batch in each, clean", broker.stop)
        self._note("started with a batch in each")
        self._restart("a batch in each, kill -9 without a write", broker.kill)
        trio.run(self._write_each)
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
            broker.stop(timeout=_PATIENCE_S)
            self._figures[f"s to stop: {state}"] = time.perf_counter() - started
        else:
            end()
        started = time.perf_counter()
        broker.start(timeout=_PATIENCE_S)
        self._figures[f"s to ready: {state}"] = time.perf_counter() - started
        host, port = broker.bootstrap.rsplit(":", 1)
        produce_first(host, int(port), PROBE, time.monotonic() + _PATIENCE_S)
        self._figures[f"s to first ack: {state}"] = time.perf_counter() - started
        self._figures[f"CPU s to first ack: {state}"] = cpu_seconds(broker.pid)

    async def _connect(self) -> Connection:
        return await connect(self._broker.bootstrap, _PATIENCE_S)

    async def _create(self, topics: Sequence[str], each: int) -> None:
        """Creates topics by large requests, and returns when the last partition of each can be produced to."""
        connection = await self._connect()
        timeout_ms = int(_PATIENCE_S * 1000)
        at_once = max(_MOST_CREATED // each, 1)
        for first in range(0, len(topics), at_once):
            wanted = [
                CreatableTopic(name=name, num_partitions=min(each, _MOST_CREATED), replication_factor=1)
                for name in topics[first : first + at_once]
            ]
            created = await connection.call(CreateTopicsRequest(timeout_ms=timeout_ms, topics=wanted))
            _check(created.topics)
        for count in range(2 * _MOST_CREATED, each + 1, _MOST_CREATED):
            more = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name in topics]
            _check((await connection.call(CreatePartitionsRequest(timeout_ms=timeout_ms, topics=more))).results)
        for name in topics:
            await self._produce(connection, name, range(each - 1, each))
        connection.close()

    async def _write_each(self) -> None:
        connection = await self._connect()
        for name in self._topics:
            for first in range(0, self._each, _AT_ONCE):
                indexes = range(first, min(first + _AT_ONCE, self._each))
                await self._produce(connection, name, indexes)
        connection.close()

    async def _produce(self, connection: Connection, topic: str, indexes: range) -> None:
        """Returns when all took the batch, however often a broker has to be asked that has not made them yet."""
        data = [PartitionProduceData(index=index, records=self._batch) for index in indexes]
        topics = [TopicProduceData(name=topic, partition_data=data)]
        with trio.fail_after(_PATIENCE_S):
            while True:
                answer = await connection.call(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), _BY_NAME)
                if not any(told.error_code for told in answer.responses[0].partition_responses):
                    return
                await trio.sleep(_PAUSE_S)


def _check(results: Sequence[Any]) -> None:
    errors = {result.error_code for result in results} - {0}
    if errors:
        raise RuntimeError(f"creation failed with {errors}")
