"""Producing and consuming against a scripted broker that keeps what it is sent."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kwire.client.consumer import Consumer
from kwire.client.errors import ProtocolViolation, UnsupportedApi
from kwire.client.offsets import Isolation
from kwire.client.partitioner import murmur2, partition_for_key
from kwire.client.producer import METADATA_MAX_AGE, Produced, Producer
from kwire.ports.randomness import SeededRandomness
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kwire.protocol.messages.metadata import MetadataRequest
from kwire.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import read_header
from kwire.protocol.records.record import Record, iter_records
from tests.client.scripted_broker import TOPIC_ID, ScriptedBroker, metadata
from tests.storage.support import ManualClock


class Leader:
    """Scripts for Produce and Fetch of topic t: batches kept by partition, errors given as told."""

    def __init__(self, broker) -> None:
        self.batches: dict[int, list[bytes]] = {}
        self.errors: list[int] = []
        self.details: dict[str, object] = {}
        broker.on(ProduceRequest, self.produce)
        broker.on(FetchRequest, self.fetch)

    def produce(self, request: ProduceRequest) -> ProduceResponse | None:
        answered = []
        (topic,) = request.topic_data
        assert (topic.name, topic.topic_id) in [("t", bytes(16)), ("", TOPIC_ID)]
        for data in topic.partition_data:
            error = self.errors.pop(0) if self.errors else 0
            kept = self.batches.setdefault(data.index, [])
            offset = sum(read_header(batch).count for batch in kept)
            if not error:
                kept.append(bytes(data.records))
            answered.append(
                PartitionProduceResponse(index=data.index, error_code=error, base_offset=offset, **self.details)
            )
        if request.acks == 0:
            return None
        response = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answered)
        return ProduceResponse(responses=[response])

    def fetch(self, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        found = []
        for asked in topic.partitions:
            blob = b"".join(
                batch for batch in self.batches.get(asked.partition, []) if end_of(batch) > asked.fetch_offset
            )
            error = self.errors.pop(0) if self.errors else 0
            found.append(
                PartitionData(
                    partition_index=asked.partition,
                    error_code=error,
                    high_watermark=100,
                    records=None if error else blob[: asked.partition_max_bytes],
                    aborted_transactions=self.details.get("aborted"),
                )
            )
        return FetchResponse(
            responses=[FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=found)]
        )

    def values(self, partition: int) -> list[bytes | None]:
        return [record.value for batch in self.batches.get(partition, []) for record in iter_records(batch)]


def end_of(batch: bytes) -> int:
    return read_header(batch).next_offset


@pytest.fixture
def leader(broker) -> Leader:
    return Leader(broker)


# From the Java client's own test of its hash.
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_the_java_client(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected & 0xFFFFFFFF
    assert partition_for_key(data, 7) == (expected & 0x7FFFFFFF) % 7


@pytest.mark.parametrize("versions", [(3, 8), (3, 13)])
@pytest.mark.parametrize("compression", Compression)
async def test_records_arrive_as_sent(client, broker, leader, compression: Compression, versions) -> None:
    broker.versions[ProduceRequest] = versions
    producer = Producer(client, compression=compression)
    headers = [("h", b"1"), ("h", None)]
    await producer.send("t", b"value", key=b"key", headers=headers, timestamp=1234, partition=1)
    await producer.send("t", None, partition=1, timestamp=1235)
    assert await producer.flush() == {("t", 1): Produced(0, -1)}
    (batch,) = leader.batches[1]
    assert read_header(batch).codec is compression
    assert list(iter_records(batch)) == [
        Record(0, 1234, b"key", b"value", headers),
        Record(1, 1235, None, None, []),
    ]
    assert await producer.flush() == {}


async def test_a_key_decides_the_partition(client, broker, leader) -> None:
    broker.on(MetadataRequest, metadata({"t": [1] * 7}))
    producer = Producer(client)
    for key in (b"21", b"foobar", b"abc", b"abc"):
        await producer.send("t", key, key=key)
    await producer.flush()
    for key in (b"21", b"foobar", b"abc"):
        assert key in leader.values(partition_for_key(key, 7))


async def test_without_a_key_records_stay_together_for_a_batch(client, broker, leader) -> None:
    broker.on(MetadataRequest, metadata({"t": [1, -1, 1, 1]}))
    producer = Producer(client, batch_bytes=1000, randomness=SeededRandomness(1))
    for number in range(100):
        await producer.send("t", b"%03d" % number + bytes(73))
    await producer.flush()
    assert 1 not in leader.batches, "a partition without a leader"
    assert sorted(len(batches) for batches in leader.batches.values()) == [3, 3, 4]
    for batches in leader.batches.values():
        assert {read_header(batch).count for batch in batches} == {10}
    everything = sorted(value[:3] for partition in leader.batches for value in leader.values(partition))
    assert everything == [b"%03d" % number for number in range(100)]


async def test_passing_errors_are_retried_in_order(client, leader, autojump_clock) -> None:
    leader.errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
    producer = Producer(client)
    for number in range(3):
        await producer.send("t", b"%d" % number, partition=0)
        await producer.flush()
    assert leader.values(0) == [b"0", b"1", b"2"]


async def test_a_refusal_says_why(client, leader) -> None:
    leader.errors = [ErrorCode.INVALID_RECORD]
    leader.details = {
        "error_message": "One or more records have been rejected",
        "record_errors": [BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="no key")],
    }
    producer = Producer(client)
    await producer.send("t", b"x", partition=0)
    with pytest.raises(KafkaError, match="INVALID_RECORD: t-0: One or more records have been rejected: no key"):
        await producer.flush()


async def test_without_acks_nothing_is_waited_for(client, broker, leader) -> None:
    producer = Producer(client, acks=0)
    for number in range(3):
        await producer.send("t", b"%d" % number, partition=0)
        assert await producer.flush() == {("t", 0): Produced(-1, -1)}
    await client.topic("t")  # answered after the others have been served
    assert leader.values(0) == [b"0", b"1", b"2"]


async def test_zstd_needs_a_broker_that_knows_it(client, broker, leader) -> None:
    broker.versions[ProduceRequest] = (3, 6)
    producer = Producer(client, compression=Compression.ZSTD)
    await producer.send("t", b"x", partition=0)
    with pytest.raises(UnsupportedApi, match="Produce version 7"):
        await producer.flush()


async def test_idempotence(client, broker, leader, autojump_clock) -> None:
    broker.on(
        InitProducerIdRequest,
        [
            InitProducerIdResponse(producer_id=7, producer_epoch=0),
            InitProducerIdResponse(producer_id=8, producer_epoch=0),
        ],
    )
    producer = Producer(client, idempotent=True)

    async def send(count: int) -> None:
        for _ in range(count):
            await producer.send("t", b"x", partition=0)
        await producer.flush()

    await send(3)
    leader.errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    await send(2)
    leader.errors = [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    with pytest.raises(KafkaError):
        await send(1)
    await send(1)
    headers = [read_header(batch) for batch in leader.batches[0]]
    assert [(h.producer_id, h.producer_epoch, h.base_sequence) for h in headers] == [(7, 0, 0), (7, 0, 3), (8, 0, 0)]
    with pytest.raises(ValueError, match="acks=all"):
        Producer(client, acks=1, idempotent=True)


def keep(leader: Leader, partition: int, *batches: bytes) -> None:
    leader.batches.setdefault(partition, []).extend(batches)


def batch_of(first: int, *values: bytes, **details: object) -> bytes:
    records = [Record(first + index, 1000, None, value) for index, value in enumerate(values)]
    return build_batch(records, base_offset=first, **details)  # type: ignore[arg-type]


@pytest.mark.parametrize("versions", [(4, 11), (4, 18)])
async def test_consuming_goes_on_where_it_was(client, broker, leader, versions) -> None:
    broker.versions[FetchRequest] = versions
    keep(leader, 0, batch_of(0, b"a", b"b", b"c"), batch_of(3, b"d"))
    keep(leader, 1, batch_of(5, b"e", log_append_time=77))
    consumer = Consumer(client)
    await consumer.assign({("t", 0): 1, ("t", 1): 0})
    records = await consumer.poll()
    assert [(r.topic, r.partition, r.offset, r.value) for r in records] == [
        ("t", 0, 1, b"b"),
        ("t", 0, 2, b"c"),
        ("t", 0, 3, b"d"),
        ("t", 1, 5, b"e"),
    ]
    assert [(r.timestamp, r.log_append_time) for r in records[-2:]] == [(1000, False), (77, True)]
    assert consumer.positions == {("t", 0): 4, ("t", 1): 6}
    assert await consumer.poll() == []
    consumer.unassign(("t", 1))
    keep(leader, 1, batch_of(6, b"unseen"))
    keep(leader, 0, batch_of(4, b"f"))
    assert [record.value for record in await consumer.poll()] == [b"f"]


async def test_a_batch_cut_off_at_the_end_of_a_fetch_waits_for_the_next(client, leader) -> None:
    first, second = batch_of(0, b"a"), batch_of(1, b"b")
    keep(leader, 0, first, second)
    consumer = Consumer(client, partition_max_bytes=len(first) + 20)
    await consumer.assign({("t", 0): 0})
    assert [record.value for record in await consumer.poll()] == [b"a"]
    assert [record.value for record in await consumer.poll()] == [b"b"]


async def test_control_and_aborted_records(client, leader) -> None:
    def marker(offset: int, producer: int, commit: bool) -> bytes:
        return build_end_txn_marker(producer, 0, commit=commit, coordinator_epoch=0, timestamp=0, base_offset=offset)

    def part(offset: int, producer: int, value: bytes) -> bytes:
        return batch_of(offset, value, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)

    keep(
        leader,
        0,
        part(0, 1, b"committed"),
        part(1, 2, b"aborted"),
        batch_of(2, b"plain"),
        marker(3, 1, True),
        part(4, 2, b"aborted too"),
        marker(5, 2, False),
        part(6, 2, b"committed later"),
        marker(7, 2, True),
    )
    leader.details = {"aborted": [AbortedTransaction(producer_id=2, first_offset=1)]}
    committed = Consumer(client, isolation=Isolation.READ_COMMITTED)
    await committed.assign({("t", 0): 0})
    assert [record.value for record in await committed.poll()] == [b"committed", b"plain", b"committed later"]
    everything = Consumer(client)
    await everything.assign({("t", 0): 0})
    assert [record.offset for record in await everything.poll()] == [0, 1, 2, 4, 6]
    assert committed.positions == everything.positions == {("t", 0): 8}


async def test_a_corrupt_batch_fails_after_what_came_before_it(client, leader) -> None:
    corrupt = bytearray(batch_of(1, b"b"))
    corrupt[-3] ^= 1
    keep(leader, 0, batch_of(0, b"a"), bytes(corrupt))
    consumer = Consumer(client)
    await consumer.assign({("t", 0): 0})
    assert [record.value for record in await consumer.poll()] == [b"a"]
    with pytest.raises(CorruptBatchError, match="batch at offset 1 of t-0 has a wrong checksum"):
        await consumer.poll()


async def test_bytes_that_lead_nowhere_are_no_endless_loop(client, leader) -> None:
    keep(leader, 0, batch_of(0, b"a" * 100))
    consumer = Consumer(client, partition_max_bytes=50)
    await consumer.assign({("t", 0): 0})
    with pytest.raises(ProtocolViolation, match="no whole batch where offset 0 should be"):
        await consumer.poll()


async def test_fetch_errors(client, leader, autojump_clock) -> None:
    keep(leader, 0, batch_of(0, b"a"))
    consumer = Consumer(client)
    await consumer.assign({("t", 0): 0})
    leader.errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID]
    assert [record.value for record in await consumer.poll()] == [b"a"]
    leader.errors = [ErrorCode.OFFSET_OUT_OF_RANGE]
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE: t-0 at offset 1"):
        await consumer.poll()


async def test_what_one_partition_has_is_not_lost_by_anothers_error(client, leader) -> None:
    keep(leader, 1, batch_of(0, b"b"))
    consumer = Consumer(client)
    await consumer.assign({("t", 0): 50, ("t", 1): 0})
    leader.errors = [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert [record.value for record in await consumer.poll()] == [b"b"]
    leader.errors = [ErrorCode.OFFSET_OUT_OF_RANGE]
    with pytest.raises(KafkaError, match="t-0 at offset 50"):
        await consumer.poll()


async def test_a_lasting_error_is_told_although_another_partition_has_records(client, leader) -> None:
    keep(leader, 1, batch_of(0, b"b"))
    consumer = Consumer(client)
    await consumer.assign({("t", 0): 50, ("t", 1): 0})
    leader.errors = [ErrorCode.OFFSET_OUT_OF_RANGE]
    assert [record.value for record in await consumer.poll()] == [b"b"]
    keep(leader, 1, batch_of(1, b"c"))
    with pytest.raises(KafkaError, match="t-0 at offset 50"):
        await consumer.poll()
    assert [record.value for record in await consumer.poll()] == [b"c"]


async def test_a_leader_that_moved_is_found_although_another_partition_has_records(client, broker, leader) -> None:
    keep(leader, 0, batch_of(0, b"a"))
    keep(leader, 1, batch_of(0, b"b"))
    consumer = Consumer(client)
    await consumer.assign({("t", 0): 0, ("t", 1): 0})
    asked = len(broker.got(MetadataRequest))
    leader.errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert [record.value for record in await consumer.poll()] == [b"b"]
    assert len(broker.got(MetadataRequest)) == asked + 1
    keep(leader, 1, batch_of(1, b"c"))
    assert [record.value for record in await consumer.poll()] == [b"a", b"c"]


async def test_a_partition_without_a_leader_holds_up_no_other(client, broker, leader) -> None:
    broker.on(MetadataRequest, metadata({"t": [-1, 1]}))
    keep(leader, 1, batch_of(0, b"b"))
    consumer = Consumer(client)
    await consumer.assign({("t", 0): 0, ("t", 1): 0})
    assert [record.value for record in await consumer.poll()] == [b"b"]


async def test_a_cancelled_poll_loses_nothing(network, nursery, client, broker, leader) -> None:
    """One leader has answered, the other has not."""
    other = ScriptedBroker(network.transport("other"), "other", 9093)
    await nursery.start(other.run)
    broker.on(MetadataRequest, metadata({"t": [1, 2]}, {1: ("broker", 9092), 2: ("other", 9093)}))
    other.on(FetchRequest, [None, leader.fetch])
    keep(leader, 0, batch_of(0, b"a"))
    keep(leader, 1, batch_of(0, b"b"))
    consumer = Consumer(client)
    await consumer.assign({("t", 0): 0, ("t", 1): 0})
    async with trio.open_nursery() as polling:
        polling.start_soon(consumer.poll)
        await trio.testing.wait_all_tasks_blocked()
        assert len(other.got(FetchRequest)) == len(broker.got(FetchRequest)) == 1
        polling.cancel_scope.cancel()
    other.scripts[FetchRequest] = leader.fetch
    client.close()
    assert sorted(record.value for record in await consumer.poll()) == [b"a", b"b"]


async def test_an_unknown_topic_cannot_be_assigned(client, broker, autojump_clock) -> None:
    broker.on(MetadataRequest, metadata({"x": []}, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    with pytest.raises(KafkaError, match="topic 'x'"):
        await Consumer(client).assign({("x", 0): 0})


async def test_nothing_assigned_is_nothing_read(client) -> None:
    assert await Consumer(client).poll() == []


async def test_a_fetch_that_begins_at_the_marker_of_an_aborted_transaction(client, leader) -> None:
    """What the same producer wrote behind it is another transaction."""

    def part(offset: int, value: bytes) -> bytes:
        return batch_of(offset, value, producer_id=2, producer_epoch=0, base_sequence=offset, transactional=True)

    def marker(offset: int, commit: bool) -> bytes:
        return build_end_txn_marker(2, 0, commit=commit, coordinator_epoch=0, timestamp=0, base_offset=offset)

    keep(leader, 0, part(0, b"aborted"), marker(1, False), part(2, b"committed"), marker(3, True))
    leader.details = {"aborted": [AbortedTransaction(producer_id=2, first_offset=0)]}
    consumer = Consumer(client, isolation=Isolation.READ_COMMITTED)
    for start in 0, 1:
        await consumer.assign({("t", 0): start})
        assert [record.value for record in await consumer.poll()] == [b"committed"]
        assert consumer.positions == {("t", 0): 4}


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize("code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE])
async def test_what_is_too_large_together_is_sent_in_parts(
    client, broker, leader, code: ErrorCode, idempotent: bool
) -> None:
    broker.on(InitProducerIdRequest, [InitProducerIdResponse(producer_id=7, producer_epoch=0)])
    leader.errors = [code, 0, code]
    told = []
    producer = Producer(client, idempotent=idempotent, on_delivery=lambda *details: told.append(details))
    for number in range(7):
        await producer.send("t", b"%d" % number, partition=0)
    await producer.flush()
    await producer.send("t", b"7", partition=0)
    await producer.flush()
    assert leader.values(0) == [b"%d" % number for number in range(8)]
    headers = [read_header(batch) for batch in leader.batches[0]]
    assert [header.count for header in headers] == [3, 2, 2, 1]
    assert [header.base_sequence for header in headers] == ([0, 3, 5, 7] if idempotent else [-1] * 4)
    assert [(len(records), where.offset) for _, records, where in told] == [(3, 0), (2, 3), (2, 5), (1, 7)]


async def test_a_record_that_is_too_large_alone_is_refused(client, leader) -> None:
    leader.errors = [ErrorCode.MESSAGE_TOO_LARGE, 0, ErrorCode.MESSAGE_TOO_LARGE]
    producer = Producer(client)
    await producer.send("t", b"small", partition=0)
    await producer.send("t", b"large", partition=0)
    with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
        await producer.flush()
    assert leader.values(0) == [b"small"]


async def test_keys_go_by_the_partitions_that_there_are_after_a_while(client, broker, leader) -> None:
    clock = ManualClock()
    producer = Producer(client, clock=clock)
    broker.on(MetadataRequest, lambda request: metadata({"t": [1, 1]}))
    await producer.send("t", b"x", key=b"k")
    await producer.flush()
    broker.on(MetadataRequest, lambda request: metadata({"t": [1] * 40}))
    clock.advance(int(METADATA_MAX_AGE * 1000))
    await producer.send("t", b"x", key=b"k")
    await producer.flush()
    assert sorted(leader.batches) == [partition_for_key(b"k", 2)]
    clock.advance(1)
    await producer.send("t", b"x", key=b"k")
    await producer.flush()
    assert partition_for_key(b"k", 40) not in (partition_for_key(b"k", 2), -1)
    assert sorted(leader.batches) == sorted({partition_for_key(b"k", 2), partition_for_key(b"k", 40)})
