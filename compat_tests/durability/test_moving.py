"""A log moves between log dirs while stock clients write and read it, and while the broker is killed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver
from compat_tests.driver import TIMEOUT, Bounds
from compat_tests.durability.streams import ConfluentStream, KafkaPythonStream, Stream
from compat_tests.oracle.wire import Wire, response_type_of
from kwire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kwire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kwire.protocol.schema import Message
from kwire.testing.process import BrokerProcess

TOPIC = "moving"
SIZE = 2000
"""Bytes of a record: the log is many pieces long."""
MOVES = 4


class Dirs:
    """The two log dirs of a broker, and where the topic's log is."""

    def __init__(self, broker: BrokerProcess, paths: list[str]) -> None:
        self.broker = broker
        self.paths = paths

    def call(self, request: Message) -> Message:
        wire = Wire(self.broker)
        try:
            wire.send(request, request.max_version)
            return wire.receive(response_type_of(request), request.max_version)
        finally:
            wire.close()

    def move(self, to: int) -> None:
        moved = AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])
        response = self.call(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=self.paths[to], topics=[moved])]))
        assert response.results[0].partitions[0].error_code == 0

    def where(self) -> tuple[int, bool]:
        """The dir that has the log, and whether it is on its way to the other one."""
        response = self.call(DescribeLogDirsRequest(topics=None))
        found = [
            (self.paths.index(log_dir.log_dir), each.is_future_key)
            for log_dir in response.results
            for topic in log_dir.topics
            for each in topic.partitions
            if topic.name == TOPIC
        ]
        (current,) = {number for number, future in found if not future}
        return current, any(future for _, future in found)


@pytest.fixture
def dirs(tmp_path: Path) -> Iterator[Dirs]:
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    with BrokerProcess(data_dir=paths[0], arguments=["--data-dir", paths[1]]) as broker:
        ConfluentAdmin(broker.bootstrap).create_topic(TOPIC, configs={"segment.bytes": "1048576"})
        yield Dirs(broker, paths)


def values(count: int, seed: int = 1) -> list[bytes]:
    generator = random.Random(seed)
    return [b"%d " % place + generator.randbytes(SIZE) for place in range(count)]


def folders(dirs: Dirs) -> list[str]:
    return sorted(
        folder.name
        for path in dirs.paths
        for folder in Path(path).glob(f"{TOPIC}-0*")
        if not folder.name.endswith("-delete")
    )


def wait_for_one_log(dirs: Dirs) -> None:
    """Until the move under way is over: the new folder gets the log's name a moment after the log is read from it."""
    deadline = time.monotonic() + TIMEOUT
    while dirs.where()[1] or folders(dirs) != [f"{TOPIC}-0"]:
        assert time.monotonic() < deadline, folders(dirs)


@pytest.mark.parametrize("kind", [ConfluentStream, KafkaPythonStream], ids=["confluent-kafka", "kafka-python"])
def test_writing_and_reading_meanwhile(dirs: Dirs, kind: Callable[..., Stream]) -> None:
    sent: list[bytes] = []
    producer = kind(dirs.broker.bootstrap, TOPIC, idempotent=True)
    reader = Reader(dirs.broker.bootstrap)
    moves = 0
    while moves < MOVES:
        for value in values(250, len(sent)):
            producer.send(len(sent), value)
            sent.append(value)
        producer.wait_for(len(sent) // 2)
        current, under_way = dirs.where()
        if not under_way:
            dirs.move(1 - current)
            moves += 1
    producer.finish()
    assert producer.failures == []
    assert producer.acknowledged == {place: place for place in range(len(sent))}
    assert reader.finish(len(sent)) == sent
    wait_for_one_log(dirs)
    driver = ConfluentDriver(dirs.broker.bootstrap)
    assert driver.bounds(TOPIC) == Bounds(0, len(sent))
    assert [record.value for record in driver.consume(TOPIC, len(sent))] == sent


class Reader:
    """Consumes the topic from its beginning in a thread."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._count: int | None = None
        self._values: list[bytes] = []
        self._errors: list[object] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "reader",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe([TOPIC])
        deadline = time.monotonic() + 2 * TIMEOUT
        while (self._count is None or len(self._values) < self._count) and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.1):
                if message.error():
                    self._errors.append(message.error())
                else:
                    self._values.append(message.value())
        consumer.close()

    def finish(self, count: int) -> list[bytes]:
        """The values, once there are so many."""
        self._count = count
        self._thread.join()
        assert self._errors == []
        return self._values


def test_transactions_meanwhile(dirs: Dirs) -> None:
    producer = Producer({"bootstrap.servers": dirs.broker.bootstrap, "transactional.id": "mover"})
    producer.init_transactions(TIMEOUT)
    committed = []
    for number in range(40):
        producer.begin_transaction()
        batch = [b"%d-%d" % (number, place) + bytes(SIZE) for place in range(20)]
        for value in batch:
            producer.produce(TOPIC, value)
        producer.flush(TIMEOUT)
        current, under_way = dirs.where()
        if not under_way:
            dirs.move(1 - current)
        if number % 4:
            producer.commit_transaction(TIMEOUT)
            committed += batch
        else:
            producer.abort_transaction(TIMEOUT)
    assert Reader(dirs.broker.bootstrap).finish(len(committed)) == committed


@pytest.mark.parametrize("seed", range(2))
def test_a_kill_amid_moves(dirs: Dirs, seed: int) -> None:
    """Whenever it comes: what was acknowledged is there once, the log too, and the move goes on."""
    chance = random.Random(seed)
    sent = values(2500, seed)
    producer = ConfluentStream(dirs.broker.bootstrap, TOPIC, idempotent=True)
    for place, value in enumerate(sent):
        producer.send(place, value)
        if place % 500 == 499:
            producer.wait_for(place // 2)
            current, under_way = dirs.where()
            if not under_way:
                dirs.move(1 - current)
            time.sleep(chance.random() * 0.05)  # not to wait for something: the kill shall come at any moment
            dirs.broker.kill()
            dirs.broker.restart()
    producer.finish()
    assert producer.failures == []
    assert producer.acknowledged == {place: place for place in range(len(sent))}
    wait_for_one_log(dirs)
    driver = ConfluentDriver(dirs.broker.bootstrap)
    assert [record.value for record in driver.consume(TOPIC, len(sent))] == sent
    assert "Traceback" not in dirs.broker.log.read_text()
