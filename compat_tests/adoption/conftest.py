"""One Apache Kafka for all of this folder: filled and killed; filled more and stopped. Its dirs as they were then."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests.adoption import filling
from compat_tests.adoption.filling import Steps
from compat_tests.driver import TIMEOUT
from compat_tests.java_tools.tools import JavaTools
from jvm.apache_kafka import SMALL_JVM, ApacheKafka
from kwire.protocol import uuids
from kwire.protocol.messages.metadata import MetadataRequest
from kwire.storage import layout

CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    # So that the metadata are in a snapshot and in the log behind it.
    "metadata.log.max.record.bytes.between.snapshots": 4000,
    "group.initial.rebalance.delay.ms": 0,
    # A kill takes what no checkpoint has yet.
    "log.flush.start.offset.checkpoint.interval.ms": 200,
}
Contents = dict[tuple[str, int], list[tuple[Any, ...]]]


@dataclass
class Left:
    """Data dirs as the broker left them, and what it served before."""

    dirs: list[Path]
    clean: bool
    committed: Contents
    uncommitted: Contents
    offsets: dict[str, dict[int, int]]
    """By group and partition."""
    topic_ids: dict[str, str]
    steps: Steps
    steps_sent: int
    """Batches of two records."""


class Source:
    """The broker and its dirs. The first one has the metadata."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dirs = [folder / "data" / name for name in ("a", "b")]
        self.kafka = ApacheKafka(
            {**CONFIG, "log.dirs": ",".join(map(str, self.dirs))},
            data_dir=self.dirs[0],
            options=SMALL_JVM,
        )
        self._open: list[Producer] = []

    def left(self, name: str, *, clean: bool, start: int, steps: Steps) -> Left:
        """Fills the running broker, stops or kills it, and copies its dirs."""
        kafka = self.kafka
        filling.write_records(kafka.bootstrap, start)
        self._open.append(filling.write_transactions(kafka.bootstrap, start))
        sent = 5 if clean else 3
        for number in range(3 if clean else 0, sent):
            assert steps.send(kafka, 2 * number) == (0, 2 * number)
        offsets = filling.read_in_groups(kafka.bootstrap)
        filling.delete_records(kafka.bootstrap, 0, start + 5)
        self._await_log_start(start + 5)
        committed, uncommitted = (
            filling.contents(kafka.bootstrap, how) for how in ("read_committed", "read_uncommitted")
        )
        ids = _topic_ids(kafka)
        if clean:
            kafka.stop()
        else:
            kafka.kill()
        copy = self.folder / name
        shutil.copytree(self.folder / "data", copy)
        dirs = [copy / each.name for each in self.dirs]
        return Left(dirs, clean, committed, uncommitted, offsets, ids, steps, sent)

    def _await_log_start(self, offset: int) -> None:
        deadline = time.monotonic() + TIMEOUT
        checkpoints = [each / layout.LOG_START_OFFSETS for each in self.dirs]
        while not any(f"orders 0 {offset}\n" in checkpoint.read_text() for checkpoint in checkpoints):
            assert time.monotonic() < deadline, "Apache Kafka has not noted where the log starts"
            time.sleep(0.05)

    def close(self) -> None:
        self.kafka.close()
        for producer in self._open:
            producer.purge()


def _topic_ids(kafka: ApacheKafka) -> dict[str, str]:
    answer = filling.ask(kafka, MetadataRequest(topics=None))
    return {topic.name: uuids.to_text(topic.topic_id) for topic in answer.topics}


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    found = Source(tmp_path_factory.mktemp("apache"))
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="session")
def killed(source: Source) -> Left:
    """As kill -9 leaves it."""
    kafka = source.kafka.start()
    filling.create_topics(kafka.bootstrap)
    filling.set_configs(kafka, kafka.bootstrap, 1)
    return source.left("killed", clean=False, start=0, steps=Steps(kafka))


@pytest.fixture(scope="session")
def stopped(source: Source, killed: Left) -> Left:
    """As a clean stop leaves it, after a second life."""
    source.kafka.start()
    return source.left("stopped", clean=True, start=300, steps=killed.steps)


@pytest.fixture(scope="module")
def java_tools() -> Iterator[JavaTools]:
    """Of no broker yet."""
    tools = JavaTools("")
    yield tools
    tools.close()
