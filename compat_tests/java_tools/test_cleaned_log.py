"""DumpLogSegments on the files that the log cleaner writes."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.java_tools.test_dump_log import dump, numbers
from compat_tests.java_tools.tools import JavaTools
from kwire.testing.factories import BrokerFactory

pytestmark = pytest.mark.xdist_group("java")

KEYS = 40
ROUNDS = 2000
PATIENCE = 60
"""Seconds until everything that can be cleaned is cleaned."""
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}


def test_cleaned_segments_with_their_indexes(java_tools: JavaTools, kwire_broker_factory: BrokerFactory) -> None:
    broker = kwire_broker_factory({"log.cleaner.backoff.ms": 50})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("cleaned", 1, 1, config=CONFIGS)])["cleaned"].result(10)
    _write(broker.bootstrap)
    folder = Path(broker.data_dir) / "cleaned-0"
    segments = _when_cleaned(folder)
    assert numbers(_batches(java_tools, segments[0]), "baseOffset")[0] > 0
    counted = 0
    previous = -1
    for segment in segments:
        batches = _batches(java_tools, segment)
        assert all("isvalid: true" in line for line in batches)
        counted += sum(numbers(batches, "count"))
        for base, last in zip(numbers(batches, "baseOffset"), numbers(batches, "lastOffset"), strict=True):
            assert previous < base <= last
            previous = last
        _verify_indexes(java_tools, segment, batches)
    assert counted < KEYS * ROUNDS / 2
    for file in (*folder.glob("*.txnindex"), *folder.glob("*.snapshot")):
        dump(java_tools, file)


def _verify_indexes(tools: JavaTools, segment: Path, batches: list[str]) -> None:
    """As the tool does, which may find no record for the time index's entry of a last batch that is kept without any:
    then it complains of that one, in Apache Kafka's own files as well, and of nothing else."""
    for suffix in (".index", ".timeindex"):
        index = segment.with_suffix(suffix)
        if index.exists():
            dump(tools, index, "--index-sanity-check")
            if suffix == ".index" or numbers(batches, "count")[-1]:
                dump(tools, index, "--verify-index-only")
            else:
                said = tools.run("DumpLogSegments", "--files", str(index), "--verify-index-only", bootstrap=False)
                complaints = [line.strip() for line in said.lines[1:] if line.strip()]
                newest = numbers(batches, "CreateTime")[-1]
                expected = [
                    f"Found timestamp mismatch in :{index}",
                    f"Index timestamp: {newest}, log timestamp: -1",
                ]
                assert complaints in ([], expected)


def _write(bootstrap: str) -> None:
    """The same keys again and again, idempotently, every other transaction aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer", "compression.type": "lz4"})
    producer.init_transactions()
    values = random.Random(7)
    for number in range(ROUNDS):
        if number % 50 == 0:
            producer.begin_transaction()
        for key in range(KEYS):
            value = None if (key + number) % 7 == 0 else values.randbytes(50)
            producer.produce("cleaned", key=f"key {key}", value=value)
        producer.poll(0)
        if number % 50 == 49:
            if number % 100 == 99:
                producer.abort_transaction()
            else:
                producer.commit_transaction()


def _when_cleaned(folder: Path) -> list[Path]:
    """The segments that have been cleaned, once they are."""
    checkpoint = folder.parent / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + PATIENCE
    while True:
        *_, active = sorted(folder.glob("*.log"))
        if checkpoint.exists() and f"cleaned 0 {int(active.stem)}" in checkpoint.read_text().splitlines():
            return sorted(folder.glob("*.log"))[:-1]  # those of before may be gone
        assert time.monotonic() < deadline, sorted(file.name for file in folder.iterdir())
        time.sleep(0.05)


def _batches(tools: JavaTools, segment: Path) -> list[str]:
    return [line for line in dump(tools, segment) if line.startswith("baseOffset: ")]
