"""Log dirs on volumes that are full, read-only or gone: what was acknowledged stays, and the other dir serves on."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from compat_tests.durability.volumes import Volume
from compat_tests.oracle.wire import Wire, response_type_of
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import Record, iter_records
from kwire.protocol.schema import Message
from kwire.testing.process import BrokerProcess

MIB = 1 << 20
TIMEOUT = 30.0
SMALL, LARGE = "on-the-volume", "on-the-other"


class Client:
    """Asks one broker, over all its starts, and remembers what it acknowledged."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self.acknowledged: list[bytes] = []
        """In `SMALL`, by offset."""

    def call(self, request: Message, version: int | None = None) -> Message:
        wire = Wire(self._broker)
        try:
            version = request.max_version if version is None else version
            wire.send(request, version)
            return wire.receive(response_type_of(request), version)
        finally:
            wire.close()

    def create(self, topic: str, config: Mapping[str, str] | None = None, partitions: int = 1) -> None:
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in (config or {}).items()]
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=configs)],
            timeout_ms=10_000,
        )
        assert self.call(request).topics[0].error_code == 0

    def produce(self, topic: str, value: bytes, key: bytes | None = None, partition: int = 0) -> int:
        """The error code."""
        records = build_batch([Record(0, int(time.time() * 1000), key, value, [])])
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=records)])
            ],
        )
        answer = self.call(request, 12).responses[0].partition_responses[0]
        if answer.error_code == 0 and topic == SMALL:
            assert answer.base_offset == len(self.acknowledged)
            self.acknowledged.append(value)
        return answer.error_code

    def fill(self, size: int = 50_000) -> int:
        """Produces to `SMALL` until that is refused; the error code."""
        while (error := self.produce(SMALL, os.urandom(size))) == 0:
            assert len(self.acknowledged) < 10_000
        return error

    def read(self) -> list[bytes]:
        """All of `SMALL`."""
        values: list[bytes] = []
        offset = 0
        while True:
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=MIB,
                topics=[
                    FetchTopic(
                        topic=SMALL,
                        partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=MIB)],
                    )
                ],
            )
            answer = self.call(request, 12).responses[0].partitions[0]
            assert answer.error_code == 0
            if not answer.records:
                return values
            for header, batch in iter_batches(answer.records):
                offset = header.next_offset
                values += [bytes(record.value or b"") for record in iter_records(batch)]

    def metadata(self, topic: str) -> tuple[int, int, list[int]]:
        """Error, leader, offline replicas."""
        found = self.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)])).topics[0].partitions[0]
        return found.error_code, found.leader_id, list(found.offline_replicas)

    def dirs(self) -> list[int]:
        """The error of each log dir."""
        return [found.error_code for found in self.call(DescribeLogDirsRequest(topics=None)).results]

    def until_offline(self) -> None:
        """Waits until nobody leads `SMALL` any more; what is acknowledged meanwhile is nobody's business."""
        deadline = time.monotonic() + TIMEOUT
        while self.metadata(SMALL)[0] == 0:
            assert time.monotonic() < deadline
            self.produce(SMALL, b"x")


@pytest.fixture
def volume() -> Iterator[Volume]:
    with Volume(6 * MIB) as volume:
        yield volume


@pytest.fixture
def broker(tmp_path: Path, volume: Volume) -> Iterator[BrokerProcess]:
    """With two log dirs: one on the disk, one on the volume."""
    broker = BrokerProcess(
        {"replica.high.watermark.checkpoint.interval.ms": 100},
        data_dir=tmp_path / "large",
        arguments=["--data-dir", str(volume.path / "data")],
    )
    with broker:
        yield broker


@pytest.fixture
def client(broker: BrokerProcess) -> Client:
    client = Client(broker)
    client.create(LARGE)
    client.create(SMALL)
    assert client.produce(SMALL, b"first") == 0
    return client


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_volume_that_fills_up(broker: BrokerProcess, client: Client, volume: Volume, how: str) -> None:
    assert client.fill() == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(client.acknowledged) > 50
    assert shutil.disk_usage(volume.path).free > 100_000
    assert client.dirs() == [0, 0]
    assert client.read() == client.acknowledged
    assert client.produce(LARGE, b"on") == 0
    assert client.fill(100) == ErrorCode.KAFKA_STORAGE_ERROR
    broker.stop() if how == "stop" else broker.kill()
    broker.start()
    assert client.dirs() == [0, 0]
    assert client.read() == client.acknowledged
    assert client.fill() == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.read() == client.acknowledged
    volume.resize(12 * MIB)
    deadline = time.monotonic() + TIMEOUT
    while client.produce(SMALL, b"again"):
        assert time.monotonic() < deadline
    assert client.read() == client.acknowledged
    told = broker.log.read_text()
    assert told.count("the volume is full, ") == 2
    assert told.count("there is room again") == 1
    assert "Traceback" not in told


def test_a_volume_that_others_fill_to_the_last_byte(broker: BrokerProcess, client: Client, volume: Volume) -> None:
    occupy(volume)
    assert client.fill() == ErrorCode.KAFKA_STORAGE_ERROR
    client.until_offline()
    assert client.metadata(SMALL) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
    assert client.dirs() == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    assert client.produce(SMALL, b"refused") == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.metadata(LARGE) == (0, 1, [])
    assert client.produce(LARGE, b"on") == 0
    (line,) = [line for line in broker.log.read_text().splitlines() if " is offline until the broker restarts" in line]
    assert "No space left on device" in line
    assert "make room on its volume" in line
    broker.kill()
    (volume.path / "occupied").unlink()
    broker.start()
    assert client.metadata(SMALL) == (0, 1, [])
    found = client.read()
    assert found[: len(client.acknowledged)] == client.acknowledged
    client.acknowledged = found
    assert client.produce(SMALL, b"again") == 0


def commit(client: Client) -> int:
    """The offsets of a group in 100 partitions; the error code of the answer."""
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(100)]
    request = OffsetCommitRequest(
        group_id="group", topics=[OffsetCommitRequestTopic(name=LARGE, partitions=partitions)]
    )
    return client.call(request, 8).topics[0].partitions[0].error_code


def test_many_log_dirs_on_one_volume_and_groups_that_commit() -> None:
    """All dirs together leave some room, the groups leave some of that, and what makes room goes on."""
    with Volume(24 * MIB) as volume:
        dirs = [volume.path / name for name in "abcd"]
        arguments = [each for path in dirs[1:] for each in ("--data-dir", str(path))]
        config = {"offsets.topic.num.partitions": 1, "log.segment.delete.delay.ms": 0, "log.segment.bytes": MIB}
        with BrokerProcess(config, data_dir=dirs[0], arguments=arguments) as broker:
            client = Client(broker)
            client.create(LARGE, partitions=100)
            client.create(SMALL)
            client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]))
            deadline = time.monotonic() + TIMEOUT
            while commit(client):
                assert time.monotonic() < deadline
            refused: set[int] = set()
            while len(refused) < 8:  # in each dir, where several partitions are
                for index in range(8):
                    error = client.produce(LARGE, os.urandom(20_000), partition=index)
                    refused |= {index} if error == ErrorCode.KAFKA_STORAGE_ERROR else set()
            for _ in range(10_000):
                error = commit(client)
                if error:
                    break
            assert error == ErrorCode.NOT_COORDINATOR
            assert client.dirs() == [0, 0, 0, 0]
            deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name=LARGE)], timeout_ms=10_000)
            assert client.call(deletion).responses[0].error_code == 0
            deadline = time.monotonic() + TIMEOUT
            while client.produce(SMALL, b"again"):
                assert time.monotonic() < deadline
            told = broker.log.read_text()
            assert "offline" not in told
            assert "Traceback" not in told


def test_a_volume_that_is_read_only_at_the_start(broker: BrokerProcess, client: Client, volume: Volume) -> None:
    broker.stop()
    volume.make_read_only()
    broker.start()
    assert client.dirs() == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    assert client.metadata(SMALL) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, [1])
    assert client.produce(SMALL, b"refused") == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.produce(LARGE, b"on") == 0
    assert "Read-only file system" in broker.log.read_text()
    broker.stop()
    volume.make_writable()
    broker.start()
    assert client.metadata(SMALL) == (0, 1, [])
    assert client.read() == client.acknowledged


def test_a_dir_that_is_removed(broker: BrokerProcess, client: Client, volume: Volume) -> None:
    gone = (volume.path / "data").rename(volume.path / "gone")  # at once: the broker goes on to write into it
    (volume.path / "data").touch()
    shutil.rmtree(gone, ignore_errors=True)
    client.until_offline()
    assert client.produce(SMALL, b"refused") == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.produce(LARGE, b"on") == 0
    assert broker.log.read_text().count(" is offline until the broker restarts") == 1


def test_a_compacted_log_waits_until_there_is_room_to_clean_it() -> None:
    """At first its segments are larger than what is left."""
    config = {
        "log.cleaner.enable": "false",
        "log.cleaner.backoff.ms": 100,
        "log.segment.bytes": 3 * MIB,
        "log.segment.delete.delay.ms": 100,
    }
    with Volume(12 * MIB) as volume, BrokerProcess(config, data_dir=volume.path / "data") as broker:
        client = Client(broker)
        client.create(SMALL, {"cleanup.policy": "compact"})
        while shutil.disk_usage(volume.path).free > 3 * MIB:
            assert client.produce(SMALL, os.urandom(50_000), key=b"k%d" % (len(client.acknowledged) % 5)) == 0
        told = f"{SMALL}-0 is not cleaned from offset 0 on"
        broker.config["log.cleaner.enable"] = "true"
        for start in (1, 2):
            broker.stop()
            broker.start()
            until(lambda start=start: broker.log.read_text().count(told) == start)
            assert client.produce(SMALL, b"is taken", key=b"other") == 0
            assert client.dirs() == [0]
            assert client.read() == client.acknowledged
        volume.resize(24 * MIB)
        until(lambda: shutil.disk_usage(volume.path).used < 5 * MIB)
        assert client.dirs() == [0]
        left = client.read()
        assert set(left) < set(client.acknowledged)
        assert set(left) >= set(client.acknowledged[-6:])
        assert "Traceback" not in broker.log.read_text()


def test_with_the_last_dir_the_broker_ends(volume: Volume) -> None:
    with BrokerProcess(data_dir=volume.path / "data") as broker:
        client = Client(broker)
        client.create(SMALL)
        assert client.produce(SMALL, b"first") == 0
        occupy(volume)
        assert client.fill() == ErrorCode.KAFKA_STORAGE_ERROR
        broker.wait()
        assert broker.exit_code == 1
        told = broker.log.read_text()
        assert told.splitlines()[-1].startswith("kwire: all log dirs have failed, the broker ends: append of ")
        assert "Traceback" not in told
        (volume.path / "occupied").unlink()
        broker.start()
        assert client.read()[: len(client.acknowledged)] == client.acknowledged


def until(found: Callable[[], bool]) -> None:
    """Waits until that is so."""
    deadline = time.monotonic() + TIMEOUT
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def occupy(volume: Volume) -> None:
    """Writes a file until there is no room for another byte."""
    with (volume.path / "occupied").open("wb", buffering=0) as file:
        while shutil.disk_usage(volume.path).free:
            file.write(bytes(4096))
