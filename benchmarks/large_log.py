"""One partition of many gigabytes: starts after a clean stop and after kill -9, reads and look-ups at random places."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio

from benchmarks.client import connect
from benchmarks.first_produce import produce_first
from benchmarks.process import cpu_seconds, forget_cached, peak_mb, resident_mb
from benchmarks.quantile import quantile
from benchmarks.steps import Figures, StartBroker, cost
from kwire.client.connection import Connection
from kwire.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import HEADER_SIZE, read_header, seal
from kwire.protocol.records.record import Record

TOPIC = "large"
SEEKS = 500

_RECORDS = 128
_RECORD_BYTES = 1000
"""Of a batch: 128 KB, with one entry in each index."""

_STEP_MS = 2
"""From batch to batch: 20 GB are five minutes, and no segment is rolled for its age."""

_PATIENCE_S, _LED_WITHIN_S = 600.0, 30.0
_FETCH_BYTES = 64 * 1024
_BY_NAME = 12
"""The newest version of Produce and Fetch that names topics."""


def large_log(gigabytes: float) -> Callable[[StartBroker], Figures]:
    """The life of a broker with one log of so many 10^9 bytes, in segments of 1 GiB."""

    def measure(make: StartBroker) -> Figures:
        broker = make()
        try:
            return _Life(broker, int(gigabytes * 1e9 / (_RECORDS * _RECORD_BYTES))).measure()
        finally:
            broker.close()

    return measure


class _Life:
    def __init__(self, broker: Any, batches: int) -> None:
        self._broker = broker
        self._batches = batches
        self._start_ms = int(time.time() * 1000) - batches * _STEP_MS
        self._figures: Figures = {}

    def measure(self) -> Figures:
        broker, figures = self._broker, self._figures
        broker.start()
        before, started = cpu_seconds(broker.pid), time.perf_counter()
        trio.run(self._write)
        records = self._batches * _RECORDS
        figures["MB/s written"] = records * _RECORD_BYTES / 1e6 / (time.perf_counter() - started)
        figures |= cost(cpu_seconds(broker.pid) - before, records, _RECORD_BYTES, " written")
        figures["MB after"] = resident_mb(broker.pid)
        figures["MB at most, writing"] = peak_mb(broker.pid)
        started = time.perf_counter()
        broker.stop(timeout=_PATIENCE_S)
        figures["s to stop"] = time.perf_counter() - started
        forget_cached(Path(broker.data_dir))
        self._start("clean, nothing cached")
        broker.stop(timeout=_PATIENCE_S)
        self._start("clean")
        broker.kill()
        self._start("kill -9")
        before = cpu_seconds(broker.pid)
        trio.run(self._seek)
        figures["CPU ms per read or look-up"] = (cpu_seconds(broker.pid) - before) * 1000 / (4 * SEEKS)
        figures["MB at most, reading"] = peak_mb(broker.pid)
        return figures

    def _start(self, state: str) -> None:
        """The times are from exec; the first record goes to the large log."""
        broker, started = self._broker, time.perf_counter()
        broker.start(timeout=_PATIENCE_S)
        self._figures[f"s to ready: {state}"] = time.perf_counter() - started
        host, port = broker.bootstrap.rsplit(":", 1)
        produce_first(host, int(port), TOPIC, time.monotonic() + _PATIENCE_S)
        self._figures[f"s to first ack: {state}"] = time.perf_counter() - started
        self._figures[f"CPU s to first ack: {state}"] = cpu_seconds(broker.pid)

    async def _connect(self) -> Connection:
        return await connect(self._broker.bootstrap, _PATIENCE_S)

    async def _write(self) -> None:
        connection = await self._connect()
        kept = [CreatableTopicConfig(name="retention.ms", value="-1")]
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, configs=kept)
        await connection.call(CreateTopicsRequest(timeout_ms=30_000, topics=[topic]))
        value = random.Random(1).randbytes(_RECORD_BYTES - 12)
        first = build_batch([Record(offset, 0, None, value, []) for offset in range(_RECORDS)])
        header, records = read_header(first), first[HEADER_SIZE:]
        number, deadline = 0, time.monotonic() + _LED_WITHIN_S
        while number < self._batches:
            at = self._start_ms + number * _STEP_MS
            batch = seal(header._replace(base_timestamp=at, max_timestamp=at), records) + records
            data = TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
            answer = await connection.call(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]), _BY_NAME)
            error = answer.responses[0].partition_responses[0].error_code
            if not error:
                number, deadline = number + 1, time.monotonic() + _LED_WITHIN_S
            elif time.monotonic() > deadline:  # a new topic's leader takes over after it was told
                raise RuntimeError(f"a batch was not taken within {_LED_WITHIN_S} s: error {error}")
        connection.close()

    async def _seek(self) -> None:
        """Reads at random offsets, and looks random times up: where nothing is cached, and once more where it is."""
        connection = await self._connect()
        picks = random.Random(2)
        numbers = [picks.randrange(self._batches) for _ in range(SEEKS)]

        async def fetch(number: int) -> None:
            offset = number * _RECORDS + _RECORDS // 2
            partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
            topics = [FetchTopic(topic=TOPIC, partitions=[partition])]
            request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=_FETCH_BYTES, topics=topics)
            answer = await connection.call(request, _BY_NAME)
            found = answer.responses[0].partitions[0]
            if found.error_code or read_header(found.records).base_offset != number * _RECORDS:
                raise RuntimeError(f"a fetch from {offset} got {found.error_code}")

        async def look_up(number: int) -> None:
            time_ms = self._start_ms + number * _STEP_MS
            partition = ListOffsetsPartition(partition_index=0, timestamp=time_ms)
            topics = [ListOffsetsTopic(name=TOPIC, partitions=[partition])]
            answer = await connection.call(ListOffsetsRequest(replica_id=-1, topics=topics))
            found = answer.topics[0].partitions[0]
            if found.error_code or found.offset != number * _RECORDS:
                raise RuntimeError(f"a look-up of {time_ms} got {found.error_code}, offset {found.offset}")

        for name, ask in (("fetch at a random offset", fetch), ("look-up of a random time", look_up)):
            await trio.to_thread.run_sync(forget_cached, Path(self._broker.data_dir))
            await self._time(f"{name}, nothing cached", ask, numbers)
            await self._time(f"{name}, cached", ask, numbers)
        connection.close()

    async def _time(self, name: str, ask: Callable[[int], Awaitable[None]], numbers: list[int]) -> None:
        waits = []
        for number in numbers:
            started = time.perf_counter()
            await ask(number)
            waits.append((time.perf_counter() - started) * 1000)
        waits.sort()
        self._figures[f"ms p50: {name}"] = statistics.median(waits)
        self._figures[f"ms p99: {name}"] = quantile(waits, 0.99)
