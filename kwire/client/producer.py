"""Producing: records are gathered into one batch a partition and sent to its leader.

There is no task in the background: `send` sends by itself when a batch is full, `flush` sends the rest. Batches of one
partition leave one after the other, so that a retry never changes their order. Without idempotence a retry after a lost
connection may store a batch twice; with it, never.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kwire.client.metadata import check, error_of
from kwire.client.partitioner import partition_for_key
from kwire.ports.clock import SystemClock
from kwire.ports.randomness import SystemRandomness
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import add_sequence
from kwire.protocol.records.record import Record

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.connection import Connection
    from kwire.client.metadata import Topic
    from kwire.ports.clock import Clock
    from kwire.ports.randomness import Randomness
    from kwire.protocol.messages.produce import PartitionProduceResponse
    from kwire.protocol.types import TopicPartition

BATCH_BYTES = 64 * 1024
"""Keys, values and headers gathered for a partition until its batch is sent."""

BUFFER_BYTES = 4 * 1024 * 1024
"""The same over all partitions until all batches are sent."""

RECORD_OVERHEAD = 24
"""Bytes a record is taken to need besides key, value and headers."""

METADATA_MAX_AGE = 300.0
"""Seconds after which a topic is looked at again: where it has more partitions keys go elsewhere, as in other clients.
"""

ACKS_ALL = -1

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_FIRST_VERSION_WITH_ZSTD = 7
_FIRST_VERSION_WITH_TOPIC_IDS = 13

Headers = Sequence[tuple[str, bytes | None]]


class Produced(NamedTuple):
    """Where a batch went. `offset` is that of its first record; -1 where acks is 0, or for a duplicate that is too old.

    `log_append_time` is ms, -1 where the topic keeps the producer's time.
    """

    offset: int
    log_append_time: int


class _Batch:
    __slots__ = ("records", "size")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.size = 0


class Producer:
    """Gathers and sends records. One task uses it at a time.

    `acks` is 0, 1 or -1 (all in-sync replicas). `timeout` (seconds) is how long a leader may wait for its replicas.
    `on_delivery` is told of each batch that was sent: the partition, its records, and where they went.
    A record that the broker refuses raises KafkaError from the `send` or `flush` that sent it; what is left of its
    batch is dropped then, and so are the others that failed with it.
    """

    def __init__(
        self,
        client: Client,
        *,
        acks: int = ACKS_ALL,
        compression: Compression = Compression.NONE,
        idempotent: bool = False,
        timeout: float = 30.0,
        batch_bytes: int = BATCH_BYTES,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        on_delivery: Callable[[TopicPartition, Sequence[Record], Produced], None] | None = None,
    ) -> None:
        if idempotent and acks != ACKS_ALL:
            raise ValueError("idempotence needs acks=all")
        self._client = client
        self._acks = acks
        self._compression = compression
        self._idempotent = idempotent
        self._timeout = timeout
        self._batch_bytes = batch_bytes
        self._clock = clock or SystemClock()
        self._randomness = randomness or SystemRandomness()
        self._on_delivery = on_delivery
        self._batches: dict[TopicPartition, _Batch] = {}
        self._size = 0
        self._sticky: dict[str, int] = {}
        self._looked: dict[str, float] = {}
        """When each topic was looked at."""
        self._producer: tuple[int, int] | None = None
        self._sequences: dict[TopicPartition, int] = {}

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> None:
        """Adds a record; sends when enough have been gathered. The timestamp (ms) is now unless given.

        Without a partition, a key decides (as in the Java client), and records without a key stay together for a batch.
        """
        known = await self._topic(topic)
        anywhere = partition is None and key is None
        if partition is None:
            partition = self._stay(known) if key is None else partition_for_key(key, len(known.partitions))
        record = Record(
            0, self._clock.wall_ms() if timestamp is None else timestamp, key, value, list(headers) if headers else []
        )
        size = RECORD_OVERHEAD + len(key or b"") + len(value or b"")
        size += sum(len(name) + len(content or b"") for name, content in record.headers)
        batch = self._batches.setdefault((topic, partition), _Batch())
        if batch.records and batch.size + size > self._batch_bytes:
            await self._send_one(topic, partition)
            if anywhere:
                self._turn(topic)
                partition = self._stay(known)
            batch = self._batches.setdefault((topic, partition), _Batch())
        batch.records.append(record)
        batch.size += size
        self._size += size
        if self._size >= BUFFER_BYTES:
            await self.flush()

    async def flush(self) -> dict[TopicPartition, Produced]:
        """Sends everything gathered and returns where each batch went, its first part where it was sent in parts.

        Raises the first KafkaError."""
        batches, self._batches, self._size = self._batches, {}, 0
        for topic in {topic for topic, _ in batches}:
            self._turn(topic)
        return await self.send_batches({partition: batch.records for partition, batch in batches.items()})

    async def send_batches(self, batches: Mapping[TopicPartition, Sequence[Record]]) -> dict[TopicPartition, Produced]:
        """One batch a partition, all leaders at once, passing errors retried. Offsets of the records are unused.

        What is too large for a topic's max.message.bytes is sent in halves, one after the other; where the first one
        went is returned.
        """
        if not batches:
            return {}
        producer = await self._identity()
        blobs: dict[TopicPartition, bytes] = {}
        for partition, records in batches.items():
            blobs[partition] = build_batch(
                [record._replace(offset=index) for index, record in enumerate(records)],
                compression=self._compression,
                producer_id=producer[0],
                producer_epoch=producer[1],
                base_sequence=self._sequences.get(partition, 0) if self._idempotent else -1,
            )
        try:
            answers = await self._client.at_leaders(blobs, self._produce)
            produced: dict[TopicPartition, Produced] = {}
            too_large = []
            for partition, answer in answers.items():
                if not isinstance(answer, KafkaError):
                    produced[partition] = answer
                elif answer.code in _TOO_LARGE and len(batches[partition]) > 1:
                    too_large.append(partition)
                else:
                    raise answer
        except BaseException:  # which sequences the brokers have seen is not known: begin anew with another producer id
            self._producer = None
            self._sequences.clear()
            raise
        for partition, where in produced.items():
            records = batches[partition]
            self._sequences[partition] = add_sequence(self._sequences.get(partition, 0), len(records))
            if self._on_delivery is not None:
                self._on_delivery(partition, records, where)
        for partition in too_large:
            records = batches[partition]
            middle = len(records) // 2
            produced |= await self.send_batches({partition: records[:middle]})
            await self.send_batches({partition: records[middle:]})
        return produced

    async def _produce(
        self, connection: Connection, blobs: dict[TopicPartition, bytes]
    ) -> dict[TopicPartition, Produced | KafkaError]:
        metadata = self._client.metadata
        if self._compression is Compression.ZSTD:
            connection.require(ProduceRequest, _FIRST_VERSION_WITH_ZSTD)
        named = not metadata.have_ids(topic for topic, _ in blobs)
        version = connection.version(ProduceRequest, _FIRST_VERSION_WITH_TOPIC_IDS - 1 if named else None)
        topics: dict[str, TopicProduceData] = {}
        for (topic, partition), blob in blobs.items():
            data = topics.setdefault(topic, TopicProduceData(name=topic, topic_id=metadata.topic_id(topic)))
            data.partition_data.append(PartitionProduceData(index=partition, records=blob))
        request = ProduceRequest(
            acks=self._acks, timeout_ms=int(self._timeout * 1000), topic_data=list(topics.values())
        )
        if self._acks == 0:
            await connection.send(request, version)
            return dict.fromkeys(blobs, Produced(-1, -1))
        response = await connection.call(request, version, timeout=self._client.request_timeout + self._timeout)
        answers: dict[TopicPartition, Produced | KafkaError] = {}
        for answered in response.responses:
            by_name = version < _FIRST_VERSION_WITH_TOPIC_IDS
            name = answered.name if by_name else metadata.name_of(answered.topic_id) or ""
            for item in answered.partition_responses:
                if item.error_code in (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    answers[name, item.index] = Produced(item.base_offset, item.log_append_time_ms)
                else:
                    answers[name, item.index] = error_of(item.error_code, _why(name, item))
        return answers

    async def _topic(self, name: str) -> Topic:
        now = self._clock.monotonic()
        if now - self._looked.setdefault(name, now) > METADATA_MAX_AGE:
            self._looked[name] = now
            await self._client.refresh_quietly([name])
        return self._client.metadata.topics.get(name) or await self._client.topic(name, create=True)

    def _stay(self, topic: Topic) -> int:
        """The partition that records without a key go to for now."""
        if topic.name not in self._sticky:
            self._sticky[topic.name] = _next_with_leader(topic, self._randomness.below(len(topic.partitions)))
        return self._sticky[topic.name]

    def _turn(self, topic: str) -> None:
        """Records without a key go to the next partition from now on."""
        known = self._client.metadata.topics.get(topic)
        if topic in self._sticky and known is not None:
            self._sticky[topic] = _next_with_leader(known, self._sticky[topic])

    async def _send_one(self, topic: str, partition: int) -> None:
        batch = self._batches.pop((topic, partition))
        self._size -= batch.size
        await self.send_batches({(topic, partition): batch.records})

    async def _identity(self) -> tuple[int, int]:
        """Producer id and epoch; -1 and -1 without idempotence."""
        if not self._idempotent:
            return -1, -1
        if self._producer is None:
            self._producer = await self._client.retrying(self._new_identity)
        return self._producer

    async def _new_identity(self) -> tuple[int, int]:
        response = await self._client.call(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=int(self._timeout * 1000))
        )
        check(response.error_code, "no producer id")
        return response.producer_id, response.producer_epoch


def _next_with_leader(topic: Topic, last: int) -> int:
    """The first partition after `last`, round and round, that has a leader; just the next where none has."""
    numbers = sorted(topic.partitions)
    turned = [number for number in numbers if number > last] + [number for number in numbers if number <= last]
    return next((number for number in turned if topic.partitions[number].leader >= 0), turned[0])


def _why(topic: str, item: PartitionProduceResponse) -> str:
    first = item.record_errors[0].batch_index_error_message if item.record_errors else None
    return ": ".join(filter(None, [f"{topic}-{item.index}", item.error_message, first]))
