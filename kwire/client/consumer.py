"""Consuming from assigned partitions: fetches from all their leaders, and the records in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import trio

from kwire.client.errors import ClientError, ProtocolViolation, is_passing
from kwire.client.metadata import error_of
from kwire.client.offsets import Isolation
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import BatchHeader, crc_matches, iter_batches
from kwire.protocol.records.record import iter_records

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.connection import Connection
    from kwire.protocol.messages.fetch import FetchResponse, PartitionData
    from kwire.protocol.types import TopicPartition

MAX_BYTES = 50 * 1024 * 1024
PARTITION_MAX_BYTES = 1024 * 1024
"""What a fetch, and of it one partition, may bring; a single larger batch comes all the same."""

MAX_WAIT_MS = 500
"""How long a fetch waits for a first byte."""

_LAST_VERSION_WITH_TOPIC_NAMES = 12


class ConsumedRecord(NamedTuple):
    """A record and where it was. Timestamps are ms; `log_append_time` says whose clock it was, the broker's if True."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    log_append_time: bool
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class _Round:
    """What one `poll` has found so far; nothing of it is the consumer's before the end, so that a poll that is
    cancelled can be repeated.
    """

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self.positions = dict(positions)
        self.records: list[ConsumedRecord] = []
        self.failures: list[KafkaError | ClientError] = []


class Consumer:
    """Reads assigned partitions from given offsets on. One task uses it at a time; nothing is committed anywhere."""

    def __init__(
        self,
        client: Client,
        *,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        partition_max_bytes: int = PARTITION_MAX_BYTES,
    ) -> None:
        self.positions: dict[TopicPartition, int] = {}
        """The next offset to fetch of each assigned partition."""
        self._client = client
        self._isolation = isolation
        self._partition_max_bytes = partition_max_bytes
        self._failure: KafkaError | ClientError | None = None

    async def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Reads these partitions from now on, each from the given offset. KafkaError if a topic does not exist."""
        await self._client.know(topic for topic, _ in positions)
        self.positions = dict(positions)
        self._failure = None

    def unassign(self, partition: TopicPartition) -> None:
        """Reads this one no longer."""
        self.positions.pop(partition, None)

    async def poll(self) -> list[ConsumedRecord]:
        """What the leaders have beyond the positions, which move on; empty if that is nothing within the waiting time.

        Passing errors are retried until the client's deadline, without holding up partitions that have records.
        Raises KafkaError (OFFSET_OUT_OF_RANGE among others), CorruptBatchError, ClientError: where other partitions
        have records, by the next call.
        """
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        found = _Round(self.positions)
        if self.positions:
            await self._client.retrying(lambda: self._fetch_all(found))
        self.positions = found.positions
        return found.records

    async def _fetch_all(self, found: _Round) -> None:
        """One fetch from each leader. Raises what failed where no partition had records."""
        found.failures.clear()
        leaders: dict[int, list[TopicPartition]] = {}
        for partition in found.positions:
            try:
                leaders.setdefault(self._client.metadata.leader(*partition), []).append(partition)
            except KafkaError as error:
                found.failures.append(error)

        async def fetch_from(broker: int, partitions: list[TopicPartition]) -> None:
            try:
                await self._fetch(broker, partitions, found)
            except (KafkaError, ClientError) as error:
                found.failures.append(error)

        async with trio.open_nursery() as nursery:
            for broker, partitions in leaders.items():
                nursery.start_soon(fetch_from, broker, partitions)
        lasting = next((failure for failure in found.failures if not is_passing(failure)), None)
        if any(is_passing(failure) for failure in found.failures):
            await self._client.refresh_quietly(sorted({topic for topic, _ in found.positions}))
        if found.records:
            self._failure = lasting
        elif found.failures:
            raise lasting or found.failures[0]

    async def _fetch(self, broker: int, partitions: list[TopicPartition], found: _Round) -> None:
        connection = await self._client.connection(broker)
        request, version = self._request(connection, partitions, found)
        response: FetchResponse = await connection.call(
            request, version, timeout=self._client.request_timeout + MAX_WAIT_MS / 1000
        )
        if response.error_code:
            raise error_of(response.error_code)
        for topic in response.responses:
            named = version <= _LAST_VERSION_WITH_TOPIC_NAMES
            name = topic.topic if named else self._client.metadata.name_of(topic.topic_id)
            for data in topic.partitions:
                partition = name or "", data.partition_index
                if partition not in partitions:
                    continue
                if data.error_code:
                    at = f" at offset {found.positions[partition]}" if data.error_code == 1 else ""
                    found.failures.append(error_of(data.error_code, f"{partition[0]}-{partition[1]}{at}"))
                    continue
                try:
                    self._take(partition, data, found)
                except (CorruptBatchError, ProtocolViolation) as error:  # what came before it is still good
                    found.failures.append(error)

    def _request(
        self, connection: Connection, partitions: Sequence[TopicPartition], found: _Round
    ) -> tuple[FetchRequest, int]:
        metadata = self._client.metadata
        named = not metadata.have_ids(topic for topic, _ in partitions)
        version = connection.version(FetchRequest, _LAST_VERSION_WITH_TOPIC_NAMES if named else None)
        topics: dict[str, FetchTopic] = {}
        for topic, number in partitions:
            fetched = topics.setdefault(topic, FetchTopic(topic=topic, topic_id=metadata.topic_id(topic)))
            fetched.partitions.append(
                FetchPartition(
                    partition=number,
                    fetch_offset=found.positions[topic, number],
                    partition_max_bytes=self._partition_max_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            isolation_level=self._isolation,
            topics=list(topics.values()),
        )
        return request, version

    def _take(self, partition: TopicPartition, data: PartitionData, found: _Round) -> None:
        """Adds the records of a fetched partition, batch by whole batch, and moves its position."""
        aborted = _Aborted(data) if self._isolation is Isolation.READ_COMMITTED else None
        position = start = found.positions[partition]
        for header, batch in iter_batches(data.records or b""):
            if header.next_offset <= position:
                continue
            if not crc_matches(header, batch):
                raise CorruptBatchError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"the batch at offset {header.base_offset} of {partition[0]}-{partition[1]} has a wrong checksum",
                )
            held = aborted is not None and aborted.holds(header)  # a fetch may begin at the marker itself
            if not (header.control or held):
                found.records += [
                    ConsumedRecord(*partition, offset, timestamp, header.log_append_time, key, value, headers)
                    for offset, timestamp, key, value, headers in iter_records(batch)
                    if offset >= position
                ]
            elif header.control and aborted is not None:
                aborted.end(header)
            found.positions[partition] = position = header.next_offset
        if position == start and data.records:
            raise ProtocolViolation(f"{partition[0]}-{partition[1]}: no whole batch where offset {start} should be")


class _Aborted:
    """Which batches of a fetched partition belong to aborted transactions (KIP-98)."""

    def __init__(self, data: PartitionData) -> None:
        transactions = data.aborted_transactions or []
        self._to_come = sorted(((item.first_offset, item.producer_id) for item in transactions), reverse=True)
        self._open: set[int] = set()

    def holds(self, header: BatchHeader) -> bool:
        """Whether this batch, in the order of the log, is to be skipped."""
        while self._to_come and self._to_come[-1][0] <= header.last_offset:
            self._open.add(self._to_come.pop()[1])
        return header.transactional and header.producer_id in self._open

    def end(self, header: BatchHeader) -> None:
        """A marker: the transaction of that producer is over."""
        self._open.discard(header.producer_id)
