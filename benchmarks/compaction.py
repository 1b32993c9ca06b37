"""The log cleaner: how long it takes, in how much memory, and what it costs those who produce meanwhile.

The topic is filled while it is not compacted; with the change of its cleanup.policy the clock starts, and it stops when
the cleaner's checkpoint says that all sealed segments are clean. Both brokers have their stock settings, but that they
look for something to clean ten times a second, so that waiting is not what is measured.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import trio

from benchmarks.client import connect
from benchmarks.loads import create_topic
from benchmarks.process import cpu_seconds, family, resident_mb
from benchmarks.steps import Figures, StartBroker, Step, cost, started
from benchmarks.watcher import producing, watching
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import HEADER_SIZE, read_header, seal
from kwire.protocol.records.record import Record

SETTINGS = {"log.cleaner.backoff.ms": "100"}
_TOPIC, _OTHER = "compacted", "other"
_TOPIC_RESOURCE = 2
_SEGMENTS = 8
"""Segments that the topic has about: all but the last are cleaned."""
_RATE = 1000
_BATCH_RECORDS = 80
_VALUE_SIZE = 180
_RECORD_SIZE = 200
"""Bytes, about: with a key of ten digits."""
_IN_FLIGHT = 5
_SEED = 7
_LOOK_S = 0.02
_GIVE_UP_S = 3600.0


def steps(*, full: bool) -> list[Step]:
    """Unless `full`, a tenth of the data."""
    megabytes, keys = (5_000, 10_000_000) if full else (500, 1_000_000)
    return [Step(f"compaction: {megabytes:,} MB with {keys:,} keys", compaction(megabytes, keys))]


def compaction(megabytes: int, keys: int) -> Callable[[StartBroker], Figures]:
    """`megabytes` (10^6 bytes) of records whose keys are drawn from `keys`."""

    def measure(make: StartBroker) -> Figures:
        with started(make, SETTINGS) as broker:
            create_topic(broker.bootstrap, _TOPIC, 1)
            create_topic(broker.bootstrap, _OTHER, 1)
            size = megabytes * 1_000_000
            _alter(broker.bootstrap, {"segment.bytes": str(size // _SEGMENTS), "retention.ms": "-1"})
            records = size // _RECORD_SIZE
            trio.run(_fill, broker.bootstrap, records, keys)
            return _while_cleaned(broker, records)

    return measure


def _while_cleaned(broker: Any, records: int) -> Figures:
    """What it costs is told over all of the log's `records`, though the newest segment's are not looked at."""
    folder = Path(broker.data_dir) / f"{_TOPIC}-0"
    before = _size(folder)
    with (
        watching(broker.bootstrap) as waits,
        producing(broker.bootstrap, _OTHER, _RATE) as produced,
        _peak_memory(broker.pid) as peak,
    ):
        spent, started = _family_cpu(broker.pid), time.perf_counter()
        _alter(broker.bootstrap, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
        _wait_until_clean(folder)
        seconds = time.perf_counter() - started
        spent = _family_cpu(broker.pid) - spent
    return {
        "s until clean": seconds,
        "CPU s": spent,
        **cost(spent, records, _RECORD_SIZE),
        "MB at most": peak[0],
        "ms p50 of a produce meanwhile": produced.p50,
        "ms p99 of a produce meanwhile": produced.p99,
        "ms longest wait of another's request": waits.longest,
        "MB of log before": before / 1e6,
        "MB of log after": _size(folder) / 1e6,
    }


def _wait_until_clean(folder: Path) -> None:
    checkpoint = folder.parent / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + _GIVE_UP_S
    end = max(int(path.stem) for path in folder.glob("*.log"))
    while time.monotonic() < deadline:
        lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
        if f"{_TOPIC} 0 {end}" in lines:
            return
        time.sleep(_LOOK_S)
    raise TimeoutError(f"{folder} is not clean after {_GIVE_UP_S} s")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))


# Beside it


@contextmanager
def _peak_memory(pid: int) -> Iterator[list[float]]:
    """The most (MB) that the process and its children had resident together, in a list of one."""
    peak = [0.0]
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_S):
            with suppress(FileNotFoundError, ProcessLookupError):  # one of them ended just now
                peak[0] = max(peak[0], sum(resident_mb(member) for member in family(pid)))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def _family_cpu(pid: int) -> float:
    return sum(cpu_seconds(member) for member in family(pid))


# Filling


def _alter(bootstrap: str, configs: dict[str, str]) -> None:
    async def alter() -> None:
        connection = await connect(bootstrap)
        changes = [AlterableConfig(name=name, config_operation=0, value=value) for name, value in configs.items()]
        resource = AlterConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=_TOPIC, configs=changes)
        answer = await connection.call(IncrementalAlterConfigsRequest(resources=[resource]))
        if answer.responses[0].error_code:
            raise RuntimeError(str(answer))
        connection.close()

    trio.run(alter)


async def _fill(bootstrap: str, count: int, keys: int) -> None:
    """Produces `count` records, several requests at a time."""
    connection = await connect(bootstrap)
    batches = _batches(count, keys)
    metadata = await connection.call(MetadataRequest(topics=[MetadataRequestTopic(name=_TOPIC)]))
    topic_id = metadata.topics[0].topic_id

    async def produce() -> None:
        for batch in batches:
            data = TopicProduceData(
                name=_TOPIC, topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch)]
            )
            answer = await connection.call(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data]))
            if answer.responses[0].partition_responses[0].error_code:
                raise RuntimeError(str(answer))

    async with trio.open_nursery() as nursery:
        for _ in range(_IN_FLIGHT):
            nursery.start_soon(produce)
    connection.close()


def _batches(count: int, keys: int) -> Iterator[bytes]:
    """Batches of `_BATCH_RECORDS` records whose keys are drawn anew, from one that is built as any other."""
    chance = random.Random(_SEED)
    now = int(time.time() * 1000)
    records = [Record(number, now, b"%010d" % number, bytes(_VALUE_SIZE), []) for number in range(_BATCH_RECORDS)]
    model = build_batch(records)
    header = read_header(model)
    *gaps, rest = re.split(rb"\d{10}", model[HEADER_SIZE:])
    for _ in range(count // _BATCH_RECORDS):
        drawn = chance.choices(range(keys), k=_BATCH_RECORDS)
        body = b"".join(gap + b"%010d" % key for gap, key in zip(gaps, drawn, strict=True)) + rest
        yield seal(header, body) + body
