"""Several log dirs: what Apache Kafka and kwire answer to moves between them, and when one of them fails.

Each has three dirs of its own, of which the first has the metadata; of a path in an answer the last name is compared.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat_tests.oracle.wire import Address, Wire, response_type_of
from jvm.apache_kafka import SMALL_JVM, ApacheKafka
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kwire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kwire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kwire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from kwire.protocol.schema import Message
from kwire.testing.process import BrokerProcess

pytestmark = pytest.mark.xdist_group("oracle")

TIMEOUT = 30.0
DIRS = ("one", "two", "three")
SETTINGS = {"replica.high.watermark.checkpoint.interval.ms": 200}
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
VALUE = os.urandom(30_000)


class Sides(NamedTuple):
    """Both brokers, and the folder that holds the dirs of each."""

    kafka: ApacheKafka
    kwire: BrokerProcess
    root: Path

    def agree(self, scenario: Callable[[Teller], None]) -> None:
        kafka = Teller(self.kafka, self.root / "kafka")
        kwire = Teller(self.kwire, self.root / "kwire")
        for teller in (kafka, kwire):
            try:
                scenario(teller)
            finally:
                teller.close()
        assert kwire.told == kafka.told


class Teller:
    """Asks one broker, and notes its answers."""

    def __init__(self, address: Address, root: Path) -> None:
        self.root = root
        self.told: list[Any] = []
        self._wire = Wire(address)

    def close(self) -> None:
        self._wire.close()

    def call(self, request: Message, version: int | None = None) -> Any:
        version = request.max_version if version is None else version
        self._wire.send(request, version)
        return self._wire.receive(response_type_of(request), version)

    def note(self, *what: Any) -> None:
        self.told.append(what)

    def until(self, seen: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT
        while not seen():
            assert time.monotonic() < deadline, self.told[-3:]
            time.sleep(0.02)

    # Asking

    def path(self, name: str) -> str:
        return str(self.root / name)

    def alter(self, *moves: tuple[str, str, list[int]], version: int = 2) -> None:
        """Each of path, topic, partitions."""
        dirs = [
            AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=partitions)])
            for path, topic, partitions in moves
        ]
        response = self.call(AlterReplicaLogDirsRequest(dirs=dirs), version)
        found = {
            (topic.topic_name, each.partition_index): _name(each.error_code)
            for topic in response.results
            for each in topic.partitions
        }
        self.note("alter", [(Path(path).name, *rest) for path, *rest in moves], found)

    def create(self, topic: str, *, at: str | None = None) -> None:
        """Creates a topic with one partition, in that dir; returns when it can be produced to."""
        if at is not None:
            self.alter((self.path(at), topic, [0]))
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)], timeout_ms=10_000
        )
        assert self.call(request).topics[0].error_code == 0
        self.until(lambda: self.produce(topic) == 0)

    def produce(self, topic: str) -> int:
        records = build_batch([Record(0, int(time.time() * 1000), None, VALUE, [])])
        data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])]
        response = self.call(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=data), 12)
        return response.responses[0].partition_responses[0].error_code

    def use(self, topic: str) -> None:
        """Notes what a produce, a fetch and a look-up of its end say."""
        fetch = FetchRequest(
            max_wait_ms=0,
            topics=[FetchTopic(topic=topic, partitions=[FetchPartition(partition=0, partition_max_bytes=100)])],
        )
        end = ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
        )
        listed = self.call(end, 5).topics[0].partitions[0]
        self.note(
            "use",
            topic,
            _name(self.produce(topic)),
            _name(self.call(fetch, 12).responses[0].partitions[0].error_code),
            _name(listed.error_code),
            listed.offset,
        )

    def describe(self, topic: str) -> dict[str, Any]:
        """By dir: its error, or whether its volume is told, and what is there of the topic: lag, future."""
        response = self.call(DescribeLogDirsRequest(topics=None))
        found: dict[str, Any] = {}
        for log_dir in response.results:
            there = [
                (each.partition_index, each.offset_lag, each.is_future_key, each.partition_size > 0)
                for name in log_dir.topics
                for each in name.partitions
                if name.name == topic
            ]
            found[Path(log_dir.log_dir).name] = (_name(log_dir.error_code), log_dir.total_bytes > 0, there)
        return found

    def metadata(self, topic: str) -> tuple[Any, ...]:
        response = self.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
        if not response.topics[0].partitions:
            return (_name(response.topics[0].error_code),)
        found = response.topics[0].partitions[0]
        return (
            _name(found.error_code),
            found.leader_id,
            found.leader_epoch,
            list(found.replica_nodes),
            list(found.isr_nodes),
            list(found.offline_replicas),
        )

    def limit(self, rate: int | None) -> None:
        config = AlterableConfig(
            name=RATE, config_operation=1 if rate is None else 0, value=None if rate is None else str(rate)
        )
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])]
        )
        assert self.call(request).responses[0].error_code == 0

    def reassign(self, topic: str, *partitions: tuple[int, list[int] | None], version: int = 1) -> None:
        asked = [ReassignablePartition(partition_index=index, replicas=replicas) for index, replicas in partitions]
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=10_000, topics=[ReassignableTopic(name=topic, partitions=asked)]
        )
        response = self.call(request, version)
        found = [
            (each.partition_index, _name(each.error_code), each.error_message)
            for each in response.responses[0].partitions
        ]
        self.note("reassign", topic, partitions, response.error_code, response.error_message, found)


def _name(code: int) -> str:
    return ErrorCode(code).name


@pytest.fixture(scope="module")
def sides(against: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    if against:
        pytest.skip("compares kwire with an Apache Kafka of its own")
    root = tmp_path_factory.mktemp("dirs")
    kafkas, kwires = ([str(root / side / name) for name in DIRS] for side in ("kafka", "kwire"))
    settings = SETTINGS | {"log.dirs": ",".join(kafkas)}
    arguments = [word for path in kwires[1:] for word in ("--data-dir", path)]
    (root / "kafka" / "one").mkdir(parents=True)
    with (
        ApacheKafka(settings, data_dir=kafkas[0], options=SMALL_JVM) as kafka,
        BrokerProcess(SETTINGS, data_dir=kwires[0], arguments=arguments) as kwire,
    ):
        yield Sides(kafka, kwire, root)


def test_what_can_not_be_moved(sides: Sides) -> None:
    def scenario(teller: Teller) -> None:
        teller.create("here", at="one")
        two = teller.path("two")
        for path in ("/nowhere", "two", two + "/", ""):
            teller.alter((path, "here", [0]))
        for topic, partition in (("absent", 0), ("here", 7), ("here", -1), ("bad name!", 0), ("x" * 220, 0)):
            teller.alter((two, topic, [partition]), version=1)
        teller.alter((teller.path("one"), "here", [0]))
        teller.alter((two, "here", []))
        teller.alter()

    sides.agree(scenario)


def test_a_move_under_way(sides: Sides) -> None:
    def scenario(teller: Teller) -> None:
        teller.create("moving", at="one")
        for _ in range(120):
            teller.produce("moving")
        teller.limit(1)
        teller.alter((teller.path("two"), "moving", [0]))
        teller.until(lambda: teller.describe("moving")["two"][2] != [])
        ((_, lag, future, _),) = teller.describe("moving")["two"][2]
        teller.note("lag", lag > 0, future)
        teller.alter((teller.path("two"), "moving", [0]))
        teller.alter((teller.path("three"), "moving", [0]))
        teller.note(teller.describe("moving")["two"], len(teller.describe("moving")["three"][2]))
        teller.alter((teller.path("one"), "moving", [0]))
        teller.note(teller.describe("moving"))
        teller.alter((teller.path("two"), "moving", [0, 0]), (teller.path("three"), "moving", [0]))
        teller.note([len(found[2]) for found in map(teller.describe("moving").get, DIRS) if found])
        teller.limit(None)
        teller.until(lambda: teller.describe("moving")["one"][2] == [])
        teller.note(teller.describe("moving"))
        teller.use("moving")

    sides.agree(scenario)


def test_reassignments_of_one_broker(sides: Sides) -> None:
    def scenario(teller: Teller) -> None:
        teller.create("assigned")
        for replicas in ([1], None, [], [2], [1, 1], [1, 2], [-1]):
            teller.reassign("assigned", (0, replicas))
        teller.reassign("assigned", (0, [1]), version=0)
        teller.reassign("assigned", (9, [1]), (-1, None), (0, [1]), (0, [1]))
        teller.reassign("assigned")
        teller.reassign("absent", (0, [1]), (0, None))

    sides.agree(scenario)


def _put_a_file_in_the_place_of(folder: Path) -> None:
    """At once: who works in the folder would make another file in it while it is removed."""
    gone = folder.with_name(f"{folder.name}-gone")
    folder.rename(gone)
    folder.touch()
    shutil.rmtree(gone, ignore_errors=True)


def test_a_dir_that_fails(sides: Sides) -> None:
    """The last one: after it, each has one dir less."""

    def scenario(teller: Teller) -> None:
        for name in DIRS:
            teller.create(f"in-{name}", at=name)
        teller.limit(1)
        for _ in range(60):
            teller.produce("in-one")
            teller.produce("in-two")
        teller.alter((teller.path("two"), "in-one", [0]), (teller.path("three"), "in-two", [0]))
        for name in DIRS:
            teller.use(f"in-{name}")
        _put_a_file_in_the_place_of(Path(teller.path("two")))
        teller.until(lambda: _fails(teller))
        for name in DIRS:
            teller.use(f"in-{name}")
            teller.note(teller.metadata(f"in-{name}"))
        described = teller.describe("in-two")
        teller.note(described["two"], [found[1:3] for found in described["three"][2]], teller.describe("in-one"))
        for path, topic in (("two", "in-one"), ("three", "in-one"), ("three", "in-two"), ("one", "in-one")):
            teller.alter((teller.path(path), topic, [0]))
        teller.alter((teller.path("three"), "absent", [0]))
        teller.create("later")
        teller.note(teller.metadata("later"))
        teller.reassign("in-two", (0, [1]))

    def _fails(teller: Teller) -> bool:
        teller.produce("in-two")  # Apache Kafka notices by the checkpoint of its high watermark
        return teller.metadata("in-two")[0] == "LEADER_NOT_AVAILABLE"

    sides.agree(scenario)
