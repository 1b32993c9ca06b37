"""A broker process with tiered storage, and a topic in it, as stock clients write and read them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from kwire.testing.process import BrokerProcess

TIMEOUT = 60
"""Seconds."""

CONFIGS = {
    "remote.storage.enable": "true",
    "segment.bytes": "1048576",
    "local.retention.bytes": "1048576",
    "file.delete.delay.ms": "0",
}
"""Of a topic: here stays little more than the active segment."""


def settings(storage: dict[str, str]) -> dict[str, object]:
    """Of a broker. `storage`: the object store's, without their prefix."""
    return {
        "remote.log.storage.system.enable": True,
        "remote.log.manager.task.interval.ms": 100,
        "log.retention.check.interval.ms": 100,
        "rlmm.config.remote.log.metadata.topic.num.partitions": 3,
        **{f"rsm.config.{name}": value for name, value in storage.items()},
    }


def in_directory(root: Path) -> dict[str, str]:
    return {"storage.backend.class": "directory", "storage.root": str(root)}


def create(broker: BrokerProcess, topic: str, **configs: str) -> None:
    """Config names with '_' for '.'."""
    more = {name.replace("_", "."): value for name, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=CONFIGS | more)])[topic].result(TIMEOUT)


def produce(broker: BrokerProcess, topic: str, values: Iterable[bytes], **config: object) -> None:
    """In order, all acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, **config})
    for value in values:
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    assert not producer.flush(TIMEOUT)


def consume(broker: BrokerProcess, topic: str, start: int = 0, **config: object) -> list[tuple[int, bytes]]:
    """(offset, value) of all records from `start` on."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "none", "enable.auto.commit": False} | config
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT)
    consumer.assign([TopicPartition(topic, 0, start)])
    found: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + TIMEOUT
    try:
        while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
            assert time.monotonic() < deadline, f"{len(found)} records read"
            for message in consumer.consume(500, 1.0):
                assert message.error() is None
                found.append((message.offset(), message.value()))
        return found
    finally:
        consumer.close()


def offset(broker: BrokerProcess, topic: str, spec: OffsetSpec) -> int:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = {TopicPartition(topic, 0): spec}
    answers = admin.list_offsets(asked)
    return next(iter(answers.values())).result(TIMEOUT).offset


def local_bytes(broker: BrokerProcess, topic: str) -> int:
    """Of the .log files that are here."""
    size = 0
    for path in (broker.data_dir / f"{topic}-0").glob("*.log"):
        with suppress(FileNotFoundError):  # deleted meanwhile
            size += path.stat().st_size
    return size


def copies(store: Path) -> list[Path]:
    """The .log files in a directory that serves as the object store.

    Not by `Path.rglob`, which fails if a folder in it that the broker clears away is there no longer when its turn
    comes.
    """
    return [Path(folder, name) for folder, _, names in os.walk(store) for name in names if name.endswith(".log")]


def until(condition: Callable[[], bool], what: str = "it did not come to be") -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def until_tiered(broker: BrokerProcess, topic: str) -> None:
    """Returns when not much more than the active segment is here."""
    until(lambda: local_bytes(broker, topic) < 2.2 * int(CONFIGS["local.retention.bytes"]), "segments stay here")
