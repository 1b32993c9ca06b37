"""The same files, cleaned by kwire and by Apache Kafka.

Apache Kafka fills topics whose cleaning is not due yet. kwire gets a copy of their files. Then both clean them, get the
same new records, and clean them again.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from compat_tests.cleaning.files import checkpoint, contents, horizons
from compat_tests.cleaning.seeded import AHEAD_MS, SEGMENT_MS, SeededLog
from compat_tests.java_tools.test_dump_log import dump
from compat_tests.java_tools.tools import JavaTools
from compat_tests.oracle.asking import TOPIC
from compat_tests.oracle.conftest import KAFKAS_OWN, SETTINGS
from compat_tests.oracle.normal import differences
from compat_tests.oracle.sides import PATIENCE, POLL, Side
from compat_tests.oracle.transactional import settle_transactions
from jvm.apache_kafka import SMALL_JVM, ApacheKafka
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("oracle")

CONFIGS = {
    "cleanup_policy": "compact",
    "segment_ms": str(SEGMENT_MS),
    "min_cleanable_dirty_ratio": "1.0",
    "message_timestamp_after_max_ms": str(10 * AHEAD_MS),
    "delete_retention_ms": "0",
}
RETENTION_MS = 3_600_000
APPEND_TIME = "append-time"
SMALL = "small"
TOPICS = {
    "at-once": {},
    "later": {"delete_retention_ms": str(RETENTION_MS)},
    APPEND_TIME: {"message_timestamp_type": "LogAppendTime", "internal_segment_bytes": "5000"},
    SMALL: {"internal_segment_bytes": "3000"},
    "and-deleted": {"cleanup_policy": "compact,delete", "retention_ms": "-1"},
}


class Cleaner:
    """One broker with the topics, and how far it has cleaned them."""

    def __init__(self, broker: Any, side: Side) -> None:
        self.side = side
        self.data_dir = Path(broker.data_dir)
        self.topics = {label: side.name(label) for label in TOPICS}

    def folder(self, label: str) -> Path:
        return self.data_dir / f"{self.topics[label]}-0"

    def clean(self) -> None:
        """Returns when all sealed segments of all topics are clean."""
        self._alter("min.cleanable.dirty.ratio", "0.0")
        for label, topic in self.topics.items():
            end = max(int(file.stem) for file in self.folder(label).glob("*.log"))
            _until(lambda topic=topic, end=end: checkpoint(self.data_dir).get((topic, 0)) == end)
        self._alter("min.cleanable.dirty.ratio", "1.0")

    def _alter(self, name: str, value: str) -> None:
        change = AlterableConfig(name=name, config_operation=0, value=value)
        resources = [
            AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=[change])
            for topic in self.topics.values()
        ]
        answer = self.side.call(IncrementalAlterConfigsRequest(resources=resources))
        assert not any(response.error_code for response in answer.responses), answer


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(POLL)


@pytest.fixture
def tools() -> Iterator[JavaTools]:
    tools = JavaTools("")
    yield tools
    tools.close()


def test_the_same_is_left(tools: JavaTools, against: object) -> None:
    if against:
        pytest.skip("compares kwire with an Apache Kafka of its own")
    seed = random.randrange(1 << 32)
    print("seed", seed)
    now_ms = int(time.time() * 1000)
    with ApacheKafka(SETTINGS | KAFKAS_OWN, options=SMALL_JVM) as kafka, BrokerProcess(SETTINGS) as kwire:
        theirs, ours = both = [
            Cleaner(kafka, Side(kafka, eventual=True, prefix="cleaned", now_ms=now_ms)),
            Cleaner(kwire, Side(kwire, eventual=False, prefix="cleaned", now_ms=now_ms)),
        ]
        for cleaner in both:
            for label, configs in TOPICS.items():
                cleaner.side.topic(label, **(CONFIGS | configs))
        settle_transactions(theirs.side)
        for number, topic in enumerate(theirs.topics.values()):
            _log(theirs, topic, seed + number).fill()
        made = _hand_over(kwire, theirs, ours)
        assert all(name.endswith(".snapshot") for names in made.values() for name in names)

        began = time.time() * 1000
        for cleaner in both:
            cleaner.clean()
        ended = time.time() * 1000
        _compare(theirs, ours, made)
        for cleaner in both:
            times = horizons(cleaner.folder("later"))
            assert times
            assert all(began <= horizon - RETENTION_MS <= ended for horizon in times)

        for cleaner in both:
            for number, (label, topic) in enumerate(cleaner.topics.items()):
                if label != APPEND_TIME:  # each broker would give the records times of its own
                    _log(cleaner, topic, seed + 100 + number).add()
            cleaner.clean()
            cleaner.side.close()
        _compare(theirs, ours, made)
        for label in TOPICS:
            for file in ours.folder(label).glob("*.log"):
                dump(tools, file)


def _log(cleaner: Cleaner, topic: str, seed: int) -> SeededLog:
    """Where sizes decide what is merged, nothing is compressed: two libraries need a byte more or less for the same."""
    return SeededLog(cleaner.side, topic, seed, compressed=topic != cleaner.topics[SMALL])


def _compare(theirs: Cleaner, ours: Cleaner, left_out: Mapping[str, Collection[str]]) -> None:
    __tracebackhide__ = True
    for label in TOPICS:
        left, right = (
            {name: said for name, said in contents(cleaner.folder(label)).items() if name not in left_out[label]}
            for cleaner in (theirs, ours)
        )
        different = differences(left, right)
        assert not different, f"{label}:\n" + "\n".join(map(str, different))


def _hand_over(kwire: BrokerProcess, theirs: Cleaner, ours: Cleaner) -> dict[str, Collection[str]]:
    """Gives kwire's partitions the files of Apache Kafka's, which writes no more into them.

    Returns the names of the snapshots, by topic, that kwire makes of the producers at the end of what it finds.
    """
    ours.side.close()
    kwire.stop()
    for label in TOPICS:
        for file in ours.folder(label).iterdir():
            if file.name != "partition.metadata":
                file.unlink()
        for file in theirs.folder(label).iterdir():
            if file.name != "partition.metadata":
                shutil.copy2(file, ours.folder(label))
    (ours.data_dir / ".kafka_cleanshutdown").unlink()
    kwire.start()
    return {label: contents(ours.folder(label)).keys() - contents(theirs.folder(label)).keys() for label in TOPICS}
