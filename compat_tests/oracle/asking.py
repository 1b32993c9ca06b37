"""Requests in few words. Where a version asks by topic id, these do too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_tests.cases import BASE_TIME
from compat_tests.oracle.sides import Side
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import HEADER_SIZE, read_header, seal
from kwire.protocol.records.record import Record

PRODUCE_BY_ID = 13
FETCH_BY_ID = 13
NEWEST = 99
"""A version that has every field; what is really sent is `Side.ask`'s choice."""
ALL = -1
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Types of resources that have configs."""
ME = "1"
"""The id of either broker, as the name of a resource."""


def batch(count: int = 1, *, start: int = BASE_TIME, step: int = 1, size: int = 0, **options: Any) -> bytes:
    """A batch of records a `step` of ms apart, with keys `0`, `1`, … and values of at least `size` bytes."""
    records = [
        Record(index, start + index * step, b"%d" % index, (b"value %d" % index).ljust(size, b"."), [])
        for index in range(count)
    ]
    return build_batch(records, **options)


def altered(blob: bytes, **fields: Any) -> bytes:
    """The batch with other values in its header and a CRC that fits them, unless `crc` is given."""
    crc = fields.pop("crc", None)
    sealed = seal(read_header(blob)._replace(**fields), blob[HEADER_SIZE:]) + blob[HEADER_SIZE:]
    return sealed if crc is None else sealed[:17] + crc.to_bytes(4) + sealed[21:]


def produce(
    side: Side,
    topic: str,
    blob: bytes | None,
    version: int = NEWEST,
    *,
    partition: int = 0,
    acks: int = ALL,
    transactional_id: str | None = None,
) -> ProduceRequest:
    named = {"topic_id": side.id_of(topic)} if version >= PRODUCE_BY_ID else {"name": topic}
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(**named, partition_data=[PartitionProduceData(index=partition, records=blob)])],
    )


def fill(side: Side, topic: str, *blobs: bytes, partition: int = 0) -> list[int]:
    """Produces the batches one after the other; returns their base offsets."""
    offsets = []
    for blob in blobs:
        (answer,) = side.call(produce(side, topic, blob, partition=partition)).responses[0].partition_responses
        assert not answer.error_code, answer
        offsets.append(answer.base_offset)
    return offsets


def fetch(
    side: Side,
    topic: str,
    offset: int = 0,
    version: int = NEWEST,
    *,
    partition: int = 0,
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    **options: Any,
) -> FetchRequest:
    return fetch_all(
        side,
        [
            (
                topic,
                FetchPartition(
                    partition=partition,
                    fetch_offset=offset,
                    partition_max_bytes=partition_max_bytes,
                    current_leader_epoch=current_leader_epoch,
                    last_fetched_epoch=last_fetched_epoch,
                ),
            )
        ],
        version,
        **options,
    )


def fetch_all(
    side: Side, asked: list[tuple[str, FetchPartition]], version: int = NEWEST, **options: Any
) -> FetchRequest:
    """A fetch of partitions of several topics, each topic named once."""
    topics: dict[str, FetchTopic] = {}
    for topic, partition in asked:
        if topic not in topics:
            named = {"topic_id": side.id_of(topic)} if version >= FETCH_BY_ID else {"topic": topic}
            topics[topic] = FetchTopic(**named)
        topics[topic].partitions.append(partition)
    defaults = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20}
    return FetchRequest(topics=list(topics.values()), **(defaults | options))


def list_offsets(
    topic: str,
    *timestamps: int,
    partition: int = 0,
    current_leader_epoch: int = -1,
    replica_id: int = -1,
    isolation_level: int = 0,
) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=partition, timestamp=timestamp, current_leader_epoch=current_leader_epoch
                    )
                    for timestamp in timestamps
                ],
            )
        ],
    )


def delete_records(topic: str, offset: int, partition: int = 0) -> DeleteRecordsRequest:
    partitions = [DeleteRecordsPartition(partition_index=partition, offset=offset)]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=10_000)


def epoch_ends(
    topic: str, *epochs: int, partition: int = 0, current: int = -1, replica: int = -1
) -> OffsetForLeaderEpochRequest:
    partitions = [
        OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        for epoch in epochs
    ]
    return OffsetForLeaderEpochRequest(
        replica_id=replica, topics=[OffsetForLeaderTopic(topic=topic, partitions=partitions)]
    )


def describe(
    kind: int,
    name: str,
    keys: Sequence[str] | None = None,
    *,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None if keys is None else list(keys)
    )
    return DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms, include_documentation=documentation)
