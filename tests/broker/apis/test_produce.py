"""Produce: where batches go, what is refused, and what the answer tells in which version."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import trio

from kwire.client.connection import Connection
from kwire.client.errors import ConnectionLost
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.metadata import MetadataRequest
from kwire.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import Record, iter_records
from tests.broker.scene import HOST, PORT, Scene, running

pytestmark = pytest.mark.usefixtures("either_way")

BY_ID = 13
NEWEST = 13
NOW = 1_700_000_000_000
"""When a scene begins."""
HOUR = 3_600_000


def batch(count: int = 1, *, key: bytes | None = b"k", size: int = 1, time_ms: int = NOW, **options: Any) -> bytes:
    return build_batch([Record(index, time_ms, key, b"v" * size, []) for index in range(count)], **options)


def to(scene: Scene, topic: str, *batches: tuple[int, bytes | None], version: int = NEWEST) -> TopicProduceData:
    """What a request says of one topic: (partition, batch)."""
    named: Any = {"topic_id": scene.id_of(topic)} if version >= BY_ID else {"name": topic}
    return TopicProduceData(
        **named, partition_data=[PartitionProduceData(index=index, records=blob) for index, blob in batches]
    )


async def ask(
    scene: Scene,
    *topics: TopicProduceData,
    version: int = NEWEST,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceResponse:
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=list(topics))
    return await scene.call(request, version)


async def produce(
    scene: Scene, blob: bytes | None, version: int = NEWEST, topic: str = "t", **options: Any
) -> PartitionProduceResponse:
    """The answer for the one partition that a batch is sent to."""
    response = await ask(scene, to(scene, topic, (0, blob), version=version), version=version, **options)
    return response.responses[0].partition_responses[0]


async def delete_until(scene: Scene, topic: str, offset: int) -> None:
    asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    response = await scene.call(DeleteRecordsRequest(topics=[asked], timeout_ms=1000))
    assert response.topics[0].partitions[0].low_watermark == offset


def stored(scene: Scene, topic: str = "t") -> bytes:
    part = scene.log(topic).read(0, 1 << 20).slice
    return b"" if part is None else bytes(part.read())


# Where to


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("split", [False, True], ids=["in one topic", "in two"])
async def test_of_a_partition_named_twice_the_last_counts(version: int, split: bool, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        asked = [(0, batch(1)), (1, batch(1)), (0, batch(2))]
        together = [asked] if not split else [[each] for each in asked]
        response = await ask(scene, *(to(scene, "t", *each, version=version) for each in together), version=version)
        (topic,) = response.responses
        assert [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses] == [
            (0, 0, 0),
            (1, 0, 0),
        ]
        assert scene.log("t").log_end_offset == 2


async def test_a_topic_without_partitions_is_not_answered(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.create("u")
        response = await ask(scene, to(scene, "t"), to(scene, "u", (0, batch())))
        assert [topic.topic_id for topic in response.responses] == [scene.id_of("u")]
        assert (await ask(scene)).responses == []


@pytest.mark.parametrize("partition", [1, -1])
async def test_a_partition_that_does_not_exist(partition: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        response = await ask(scene, to(scene, "t", (partition, batch()), (0, batch())))
        missing, found = response.responses[0].partition_responses
        assert (missing.index, missing.error_code) == (partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert (missing.base_offset, missing.log_append_time_ms, missing.log_start_offset) == (-1, -1, -1)
        assert (found.index, found.error_code, found.base_offset) == (0, 0, 0)


@pytest.mark.parametrize(
    ("version", "name", "topic_id", "code"),
    [
        (12, "absent", uuids.ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (12, "bad name", uuids.ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (13, "", b"an unknown topic", ErrorCode.UNKNOWN_TOPIC_ID),
        (13, "", uuids.ZERO, ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
async def test_a_topic_that_does_not_exist(
    version: int, name: str, topic_id: bytes, code: ErrorCode, autojump_clock
) -> None:
    async with running() as scene:
        unknown = TopicProduceData(
            name=name, topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch())]
        )
        (topic,) = (await ask(scene, unknown, version=version)).responses
        assert (topic.name, topic.topic_id) == (name, topic_id)
        assert topic.partition_responses[0].error_code == code
        assert not scene.broker.store.image.topics


@pytest.mark.parametrize("version", [9, 10, 13])
@pytest.mark.parametrize("replicas", [(2,), (2, 1)], ids=["no replica", "a follower"])
async def test_who_does_not_lead_names_the_leader(version: int, replicas: tuple[int, ...], autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        for partition in (0, 1):
            await scene.place("t", *replicas, partition=partition)
        response = await ask(scene, to(scene, "t", (0, batch()), (1, batch()), version=version), version=version)
        for told in response.responses[0].partition_responses:
            assert (told.error_code, told.log_start_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
            leader = (told.current_leader.leader_id, told.current_leader.leader_epoch)
            assert leader == ((2, 1) if version >= 10 else (-1, -1))
        nodes = [(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
        assert nodes == ([(2, "neighbour", 9093, "rack")] if version >= 10 else [])


# acks


@pytest.mark.parametrize("acks", [2, -2])
async def test_acks_that_do_not_exist(acks: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        refused = await produce(scene, batch(), acks=acks)
        assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
        assert refused.log_start_offset == -1
        assert (await produce(scene, b"", acks=acks)).error_code == ErrorCode.INVALID_RECORD
        missing = await ask(scene, to(scene, "t", (7, batch())), acks=acks)
        assert missing.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert scene.log("t").log_end_offset == 0


async def test_without_acks_nothing_is_answered(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        request = ProduceRequest(acks=0, timeout_ms=1000, topic_data=[to(scene, "t", (0, batch(2)))])
        await scene.connection.send(request)
        await scene.call(MetadataRequest(topics=[]))  # answered next, so that nothing came before it
        assert scene.log("t").log_end_offset == 2


@pytest.mark.parametrize("transactional", [False, True])
async def test_without_acks_a_refusal_closes_the_connection(transactional: bool, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        bad = batch(transactional=True) if transactional else b""
        data = [to(scene, "t", (0, bad))]
        await scene.connection.send(ProduceRequest(acks=0, timeout_ms=1000, topic_data=data))
        with pytest.raises(ConnectionLost):
            await scene.call(MetadataRequest(topics=[]))


async def test_too_few_replicas_in_sync(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", min_insync_replicas="2")
        assert (await produce(scene, batch())).error_code == 0  # of one replica nobody can ask for more
        await scene.place("t", 1, 2, in_sync=[1])
        refused = await produce(scene, batch())
        assert (refused.error_code, refused.log_start_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, 0)
        assert scene.log("t").log_end_offset == 1
        assert (await produce(scene, batch(), acks=1)).error_code == 0


async def test_waiting_for_a_replica_for_as_long_as_the_request_says(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.place("t", 1, 2)
        begun = trio.current_time()
        told = await produce(scene, batch())
        assert trio.current_time() - begun == pytest.approx(1)
        assert told.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert (told.base_offset, told.log_append_time_ms, told.log_start_offset) == (-1, -1, -1)
        assert scene.log("t").log_end_offset == 1


# What of the log


@pytest.mark.parametrize("version", [3, 4, 5, 12, 13])
async def test_the_answer_tells_where_the_log_starts(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await produce(scene, batch(5))
        await delete_until(scene, "t", 3)
        told = await produce(scene, batch(), version)
        assert (told.error_code, told.base_offset, told.log_append_time_ms) == (0, 5, -1)
        assert told.log_start_offset == (3 if version >= 5 else -1)


REFUSALS: list[tuple[str, bytes, ErrorCode, bool]] = [
    ("no batch", b"", ErrorCode.INVALID_RECORD, False),
    ("two batches", batch() * 2, ErrorCode.INVALID_RECORD, False),
    ("a wrong checksum", batch()[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE, False),
    ("too large", batch(size=2000), ErrorCode.MESSAGE_TOO_LARGE, False),
    ("a base offset", build_batch([Record(5, NOW, b"k", b"", [])], base_offset=5), ErrorCode.INVALID_RECORD, True),
    ("no key", batch(key=None), ErrorCode.INVALID_RECORD, True),
    ("the future", batch(time_ms=NOW + 2 * HOUR), ErrorCode.INVALID_TIMESTAMP, True),
    (
        "a gap",
        batch(producer_id=9, producer_epoch=1, base_sequence=7),
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        True,
    ),
    (
        "an older producer epoch",
        batch(producer_id=9, producer_epoch=0, base_sequence=5),
        ErrorCode.INVALID_PRODUCER_EPOCH,
        True,
    ),
]


@pytest.mark.parametrize(
    ("blob", "code", "tells_start"), [each[1:] for each in REFUSALS], ids=[each[0] for each in REFUSALS]
)
async def test_a_refusal_tells_where_the_log_starts_if_the_log_was_asked(
    blob: bytes, code: ErrorCode, tells_start: bool, autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("t", cleanup_policy="compact,delete", max_message_bytes="1000")
        await produce(scene, batch(5, producer_id=9, producer_epoch=1, base_sequence=0))
        await delete_until(scene, "t", 3)
        refused = await produce(scene, blob)
        assert (refused.error_code, refused.base_offset, refused.log_append_time_ms) == (code, -1, -1)
        assert refused.log_start_offset == (3 if tells_start else -1)
        assert refused.error_message
        assert scene.log("t").log_end_offset == 5


@pytest.mark.parametrize("version", [7, 8, 13])
async def test_the_records_to_blame_are_named(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", cleanup_policy="compact")
        keys = (b"k", None, b"k", None)
        blob = build_batch([Record(index, NOW, key, b"v", []) for index, key in enumerate(keys)])
        refused = await produce(scene, blob, version)
        assert refused.error_code == ErrorCode.INVALID_RECORD
        if version < 8:
            assert (refused.record_errors, refused.error_message) == ([], None)
        else:
            assert [each.batch_index for each in refused.record_errors] == [1, 3]
            assert all("without key" in each.batch_index_error_message for each in refused.record_errors)
            assert "2 record errors in total" in refused.error_message


async def test_null_for_records(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        assert (await produce(scene, None)).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("version", "code"), [(6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (7, ErrorCode.NONE)])
async def test_zstd_came_with_version_7(version: int, code: ErrorCode, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        assert (await produce(scene, batch(compression=Compression.ZSTD), version)).error_code == code


@pytest.mark.parametrize("count", [3, 300], ids=["at once", "on a worker thread"])
async def test_a_topic_with_a_codec_of_its_own(count: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", compression_type="gzip")
        for sent in (Compression.NONE, Compression.LZ4, Compression.GZIP):
            assert (await produce(scene, batch(count, compression=sent))).error_code == 0
        found = list(iter_batches(stored(scene)))
        assert [header.codec for header, _ in found] == [Compression.GZIP] * 3
        assert [len(list(iter_records(each))) for _, each in found] == [count] * 3


async def test_a_topic_of_append_time_tells_the_time(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", message_timestamp_type="LogAppendTime")
        told = await produce(scene, batch(time_ms=5))
        assert told.log_append_time_ms == scene.broker.clock.wall_ms()


# Producers with an id


async def test_a_duplicate_is_answered_with_the_offset_and_time_that_it_has(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await produce(scene, batch(2))
        sent = batch(3, producer_id=9, producer_epoch=0, base_sequence=0, time_ms=NOW - 5)
        first = await produce(scene, sent)
        assert (first.error_code, first.base_offset, first.log_append_time_ms) == (0, 2, -1)
        for version in (3, 12, 13):
            again = await produce(scene, sent, version)
            assert (again.error_code, again.base_offset, again.log_append_time_ms) == (0, 2, NOW - 5)
        assert scene.log("t").log_end_offset == 5


# The transactional flag


async def test_a_transactional_batch_needs_a_transactional_id(autojump_clock) -> None:
    """Without one, everything in the request is refused."""
    async with running() as scene:
        await scene.create("t", 2)
        flagged = batch(producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
        response = await ask(scene, to(scene, "t", (0, batch()), (1, flagged)))
        codes = [told.error_code for told in response.responses[0].partition_responses]
        assert codes == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
        assert scene.log("t").log_end_offset == 0


async def test_with_a_transactional_id_there_is_no_coordinator_to_ask(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        flagged = batch(producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
        response = await ask(scene, to(scene, "t", (0, flagged), (1, batch())), transactional_id="it")
        refused, taken = response.responses[0].partition_responses
        assert (refused.error_code, refused.log_start_offset) == (ErrorCode.NOT_ENOUGH_REPLICAS, -1)
        assert "COORDINATOR_NOT_AVAILABLE" in refused.error_message
        assert (taken.error_code, taken.base_offset) == (0, 0)
        assert scene.log("t").log_end_offset == 0


@pytest.mark.parametrize(("client_id", "code"), [("anybody", ErrorCode.INVALID_TOPIC_EXCEPTION), ("__admin_client", 0)])
async def test_clients_do_not_write_into_the_coordinators_topics(client_id: str, code: int, autojump_clock) -> None:
    async with running({"offsets.topic.num.partitions": "1"}) as scene:
        await scene.call(FindCoordinatorRequest(coordinator_keys=["group"]), 6)
        batch = build_batch([Record(0, scene.broker.clock.wall_ms(), b"key", b"value", [])])
        connection = await Connection.open(scene.network.transport("client"), HOST, PORT, client_id=client_id)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name="__consumer_offsets", partition_data=[PartitionProduceData(index=0, records=batch)]
                )
            ],
        )
        response = await connection.call(request, 12)
        assert response.responses[0].partition_responses[0].error_code == code
        connection.close()


def kept_records() -> list[memoryview]:
    """What requests in this process still hold of the frames in which they came."""
    gc.collect()
    requests = [found for found in gc.get_objects() if isinstance(found, ProduceRequest)]
    data = [data for request in requests for topic in request.topic_data for data in topic.partition_data]
    return [each.records for each in data if isinstance(each.records, memoryview)]


async def test_what_waits_for_followers_keeps_no_records(autojump_clock) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t")
        await scene.place("t", 1, 2)
        for _ in range(3):
            nursery.start_soon(scene.produce, "t", b"v" * 100)
        await trio.testing.wait_all_tasks_blocked()
        assert scene.log("t").log_end_offset == 3
        assert kept_records() == []


async def test_what_waits_for_followers_of_some_partitions_keeps_no_records(autojump_clock) -> None:
    """A request that is known is decoded again where a part of it waits."""
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", 2)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name="t",
                    partition_data=[PartitionProduceData(index=index, records=batch(3)) for index in range(2)],
                )
            ],
        )
        for _ in range(3):
            await scene.call(request, 12)
        await scene.place("t", 1, 2, partition=1)
        nursery.start_soon(scene.call, request, 12)
        await trio.testing.wait_all_tasks_blocked()
        assert [scene.log("t", index).log_end_offset for index in range(2)] == [12, 12]
        assert kept_records() == []
