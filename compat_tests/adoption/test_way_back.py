"""Topics that kwire wrote, served by a real Apache Kafka: put in by hand, and by `kwire export`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.adoption import filling
from compat_tests.adoption.command import kwire
from compat_tests.adoption.conftest import Contents, Left, Source
from compat_tests.adoption.filling import RETURNED, flushed
from compat_tests.driver import TIMEOUT
from jvm.apache_kafka import ApacheKafka
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from kwire.storage import checkpoints, layout
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("adoption")

PRODUCERS = 3
"""New ones, of which some get ids that kwire gave to others: each cluster counts for itself, in blocks of 1,000."""


@dataclass
class Returned:
    kafka: ApacheKafka
    producer_ids: set[int]
    """Whose batches kwire has."""
    committed: Contents
    uncommitted: Contents


def fill(broker: BrokerProcess) -> None:
    """All codecs, transactions with both ends, and leader epochs that a new topic of Apache Kafka has not."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.create_topics([NewTopic(name, count, 1) for name, count in RETURNED.items()]).values():
        future.result(TIMEOUT)
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        settings = {"bootstrap.servers": broker.bootstrap, "compression.type": codec, "enable.idempotence": True}
        with flushed(settings) as producer:
            for each in range(100):
                for topic, count in RETURNED.items():
                    value = f"{codec} {each} ".ljust(3000, "x")
                    producer.produce(topic, value, key=f"{each}", partition=each % count, headers={"n": codec})
        if number in (1, 3):
            broker.kill()
            broker.start()
    filling.write_transactions(broker.bootstrap, 0, "returned").abort_transaction(TIMEOUT)


@pytest.fixture(scope="module")
def returned(source: Source, stopped: Left, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Returned]:
    with BrokerProcess({"log.segment.bytes": filling.MIB}, data_dir=tmp_path_factory.mktemp("kwire") / "data") as own:
        fill(own)
        committed, uncommitted = (
            filling.contents(own.bootstrap, how, RETURNED) for how in ("read_committed", "read_uncommitted")
        )
        own.stop()
        lines = kwire("log", "dump", "--format", "json", *(own.data_dir / "returned-1").glob("*.log")).splitlines()
        producer_ids = {batch["producer_id"] for batch in map(json.loads, lines) if "batch" in batch}
        put_in_by_hand(own.data_dir / "by-hand-0", source.dirs, stopped.topic_ids["by-hand"])
        to = [word for each in source.dirs for word in ("--to", each)]
        assert "2 partitions" in kwire("export", "returned", "--data-dir", own.data_dir, *to)
        assert " 0 faults, " in kwire("log", "verify", "--deep", *source.dirs)
        yield Returned(source.kafka.start(), producer_ids, committed, uncommitted)


def put_in_by_hand(folder: Path, dirs: list[Path], topic_id: str) -> None:
    (target,) = [each / folder.name for each in dirs if (each / folder.name).exists()]
    shutil.rmtree(target)
    shutil.copytree(folder, target)
    (target / layout.PARTITION_METADATA).write_bytes(checkpoints.encode_partition_metadata(topic_id))


def test_apache_kafka_serves_every_record(returned: Returned) -> None:
    bootstrap = returned.kafka.bootstrap
    assert filling.contents(bootstrap, "read_committed", RETURNED) == returned.committed
    assert filling.contents(bootstrap, "read_uncommitted", RETURNED) == returned.uncommitted
    assert returned.committed != returned.uncommitted


def test_producers_of_the_same_ids_write_on(returned: Returned) -> None:
    """Each of them begins at sequence 0, which a producer of that id had written to kwire."""
    kafka, ids = returned.kafka, []
    for number in range(PRODUCERS):
        steps = filling.Steps(kafka)
        ids.append(steps.id)
        record = Record(0, int(time.time() * 1000), None, b"new %d" % number, [])
        blob = build_batch([record], producer_id=steps.id, producer_epoch=steps.epoch, base_sequence=0)
        assert filling.send_batch(kafka, "returned", 1, blob)[0] == 0
    assert returned.producer_ids.intersection(ids)
    filling.write_transactions(kafka.bootstrap, 50, "returned").abort_transaction(TIMEOUT)
    found = filling.contents(kafka.bootstrap, topics=["returned"])
    values = [record[3] for key in sorted(found) for record in found[key]]
    assert [value for value in values if value.startswith(b"new")] == [b"new %d" % each for each in range(PRODUCERS)]
    assert values.count(b"move 50.0") == 1
    assert b"move 51.0" not in values


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_read_them(returned: Returned, protocol: str) -> None:
    """With commits, which carry the leader epochs of what was read."""
    settings = {
        "bootstrap.servers": returned.kafka.bootstrap,
        "group.id": f"way-back-{protocol}",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    read = 0
    for _ in range(2):
        consumer = Consumer(settings)
        consumer.subscribe(list(RETURNED))
        wanted = 300
        while wanted:
            messages = consumer.consume(wanted, TIMEOUT)
            assert messages
            assert all(message.error() is None for message in messages)
            wanted -= len(messages)
            read += len(messages)
        consumer.commit(asynchronous=False)
        consumer.close()
    assert read == 600
