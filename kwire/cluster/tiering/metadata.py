"""`__remote_log_metadata`: what lies in remote storage, as records that every broker can read.

The partition of that topic in which a partition's records stand follows from the topic's id and the partition's number,
as Kafka computes it. Records count when they are committed: `publish` returns when this broker acts by its record.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import trio

from kwire.client.partitioner import murmur2
from kwire.cluster.leader_log import LeaderLog
from kwire.ports.clock import Clock
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import Record, iter_records
from kwire.protocol.remote_log_records.records import (
    RemoteLogSegmentIdEntry,
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
    SegmentLeaderEpochEntry,
    TopicIdPartitionEntry,
)
from kwire.protocol.remote_log_records.serde import RemoteLogRecord, encode_record
from kwire.protocol.types import Buffer
from kwire.storage.tiered.account import DeleteState, RemoteAccount
from kwire.storage.tiered.remote_segment import RemoteSegment, SegmentState, TopicIdPartition
from kwire.storage.tiered.remote_segments import RemoteSegments
from kwire.storage.validated import Origin

logger = logging.getLogger(__name__)

_READ_BYTES = 1 << 20
_RECORDS_PER_TURN = 200
"""Records taken up before other tasks get their turn."""


class _Tail:
    """One partition of the topic, and up to where its records were taken up."""

    def __init__(self, log: LeaderLog) -> None:
        self.log = log
        self.upto = log.start
        self.progressed = trio.Event()
        self.loaded = log.start >= log.committed
        self.account = RemoteAccount()

    def advance(self, upto: int) -> None:
        self.upto = upto
        self.progressed.set()
        self.progressed = trio.Event()


class RemoteLogMetadata:
    """What the records say, for the partitions of the topic that this broker leads. For the event loop's thread."""

    def __init__(self, clock: Clock, broker_id: int, publish_within_s: float) -> None:
        """`publish_within_s`: how long a record may take until this broker acts by it."""
        self.topic_partitions = 0
        """How many partitions the topic has; 0 while there is none."""
        self._clock = clock
        self._broker_id = broker_id
        self._publish_within_s = publish_within_s
        self._tails: dict[int, _Tail] = {}
        self._behind: dict[int, None] = {}
        self._wake = trio.Event()

    # As a leadership listener

    def lead(self, index: int, log: LeaderLog) -> None:
        """This broker leads a partition of the topic: its records are read from the first on."""
        self.resign(index)
        self._tails[index] = _Tail(log)

        def progressed() -> None:
            self._behind[index] = None
            self._wake.set()

        log.on_progress(progressed)
        progressed()

    def resign(self, index: int) -> None:
        tail = self._tails.pop(index, None)
        if tail is not None:
            tail.log.close()
            tail.progressed.set()

    # What is known

    def segments(self, of: TopicIdPartition) -> RemoteSegments | None:
        """What lies in remote storage of a partition; None while that is not known yet."""
        tail = self._tail_of(of)
        if tail is None or not tail.loaded:
            return None
        found = tail.account.partitions.get(of)
        return RemoteSegments() if found is None else found

    def mentions(self, of: TopicIdPartition) -> bool:
        """Whether there ever was something of a partition, as far as is known."""
        tail = self._tail_of(of)
        return tail is not None and of in tail.account.mentioned

    def known(self) -> Iterator[tuple[TopicIdPartition, RemoteSegments]]:
        """All partitions of which there is something."""
        for tail in self._tails.values():
            yield from tail.account.partitions.items()

    def deleted(self) -> Iterator[tuple[TopicIdPartition, RemoteSegments]]:
        """The partitions that were marked as deleted, with what is still there of them."""
        for tail in list(self._tails.values()):
            if tail.loaded:
                for of in list(tail.account.deleted):
                    yield of, tail.account.partitions.get(of) or RemoteSegments()

    def partitions_of(self, topic_id: bytes) -> list[TopicIdPartition]:
        """The partitions of a topic of which there is something in remote storage."""
        return [of for tail in self._tails.values() for of in tail.account.partitions if of.topic_id == topic_id]

    def _tail_of(self, of: TopicIdPartition) -> _Tail | None:
        return self._tails.get(partition_of(of, self.topic_partitions)) if self.topic_partitions else None

    # Writing

    async def begin_copy(self, of: TopicIdPartition, segment: RemoteSegment) -> None:
        """Announces a copy. Raises as `publish`."""
        await self._publish(
            of,
            RemoteLogSegmentMetadataRecord(
                remote_log_segment_id=_segment_id(of, segment.id),
                start_offset=segment.start_offset,
                end_offset=segment.end_offset,
                broker_id=segment.broker_id,
                max_timestamp_ms=segment.max_timestamp,
                event_timestamp_ms=segment.event_ms,
                segment_leader_epochs=[
                    SegmentLeaderEpochEntry(leader_epoch=epoch, offset=start) for epoch, start in segment.epochs
                ],
                segment_size_in_bytes=segment.size,
                remote_log_segment_state=segment.state,
                txn_index_empty=not segment.has_transactions,
            ),
        )

    async def update(self, of: TopicIdPartition, segment_id: bytes, state: SegmentState) -> None:
        """Says that a copy is in another state. Raises as `publish`."""
        await self._publish(
            of,
            RemoteLogSegmentMetadataUpdateRecord(
                remote_log_segment_id=_segment_id(of, segment_id),
                broker_id=self._broker_id,
                event_timestamp_ms=self._clock.wall_ms(),
                remote_log_segment_state=state,
            ),
        )

    async def delete_partition(self, of: TopicIdPartition, state: DeleteState) -> None:
        """Says how far the deletion of all copies of a partition is. Raises as `publish`."""
        await self._publish(
            of,
            RemotePartitionDeleteMetadataRecord(
                topic_id_partition=_topic_id_partition(of),
                broker_id=self._broker_id,
                event_timestamp_ms=self._clock.wall_ms(),
                remote_partition_delete_state=state,
            ),
        )

    async def _publish(self, of: TopicIdPartition, record: RemoteLogRecord) -> None:
        """Appends a record and waits until it is committed and taken up.

        Raises NOT_LEADER_OR_FOLLOWER where another broker leads that partition of the topic (or none does), what an
        append raises, and REQUEST_TIMED_OUT: then it may be there, or may come to be there.
        """
        tail = self._tail_of(of)
        if tail is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the remote log metadata of {of} is not kept here")
        value = encode_record(record)
        batch = build_batch([Record(0, self._clock.wall_ms(), None, value, [])])
        end = await tail.log.append(batch, origin=Origin.TIERING)
        with trio.move_on_after(self._publish_within_s):
            while tail.upto < end:
                if self._tail_of(of) is not tail:
                    raise KafkaError(
                        ErrorCode.NOT_LEADER_OR_FOLLOWER, f"the remote log metadata of {of} is not kept here any more"
                    )
                await tail.progressed.wait()
            return
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"the remote log metadata of {of} is not committed yet")

    # Reading

    async def run(self) -> None:
        """Takes up what is committed, until cancelled."""
        while True:
            self._wake = trio.Event()
            behind, self._behind = list(self._behind), {}
            for index in behind:
                tail = self._tails.get(index)
                if tail is not None:
                    await self._catch_up(index, tail)
            if not self._behind:
                await self._wake.wait()

    async def _catch_up(self, index: int, tail: _Tail) -> None:
        try:
            while tail.upto < tail.log.committed and self._tails.get(index) is tail:
                data = await tail.log.read(tail.upto, _READ_BYTES)
                if not data:
                    break
                await self._take_up(tail, data)
        except KafkaError as error:
            logger.error("the remote log metadata can't be read log=%r error=%s", tail.log, error)
            return
        tail.loaded = True

    async def _take_up(self, tail: _Tail, data: Buffer) -> None:
        count = 0
        for header, batch in iter_batches(data):
            if header.last_offset < tail.upto:
                continue
            if header.next_offset > tail.log.committed:
                break
            if not header.control:
                count += _take_up_batch(tail, header.base_offset, batch)
            tail.advance(header.next_offset)
            if count >= _RECORDS_PER_TURN:
                count = 0
                await trio.lowlevel.checkpoint()


def _take_up_batch(tail: _Tail, base_offset: int, batch: Buffer) -> int:
    """How many records it has. Anybody may write to the topic: what makes no sense is passed over."""
    try:
        records = list(iter_records(batch))
    except CorruptBatchError as error:
        _passed_over("batch", tail, base_offset, error)
        return 1
    for record in records:
        if record.value is not None:
            try:
                tail.account.take_up(record.value)
            except ValueError as error:  # not to be decoded, or a state that there is not
                _passed_over("record", tail, record.offset, error)
    return len(records)


def _passed_over(what: str, tail: _Tail, offset: int, error: Exception) -> None:
    logger.error(
        "a %s of the remote log metadata is passed over log=%r offset=%d error=%s", what, tail.log, offset, error
    )


def _topic_id_partition(of: TopicIdPartition) -> TopicIdPartitionEntry:
    return TopicIdPartitionEntry(name=of.topic, id=of.topic_id, partition=of.partition)


def _segment_id(of: TopicIdPartition, segment_id: bytes) -> RemoteLogSegmentIdEntry:
    return RemoteLogSegmentIdEntry(topic_id_partition=_topic_id_partition(of), id=segment_id)


def partition_of(of: TopicIdPartition, partitions: int) -> int:
    """The partition of `__remote_log_metadata`: murmur2 of Java's hash of the id's halves and the number."""
    most, least = (int.from_bytes(of.topic_id[start : start + 8], "big") for start in (0, 8))
    value = 1
    for part in (_hash_of_long(least), _hash_of_long(most), of.partition):
        value = (31 * value + part) & 0xFFFFFFFF
    return (murmur2(value.to_bytes(4, "big")) & 0x7FFFFFFF) % partitions


def _hash_of_long(value: int) -> int:
    return (value ^ value >> 32) & 0xFFFFFFFF
