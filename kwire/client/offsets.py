"""Offsets of partitions: the first, the last, and the first at or after a time (ListOffsets)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from kwire.client.metadata import error_of
from kwire.protocol.errors import KafkaError
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from kwire.client.client import Client
    from kwire.client.connection import Connection
    from kwire.protocol.types import TopicPartition

LATEST = -1
"""The end: the offset the next record will get (read committed: the last stable offset)."""
EARLIEST = -2
MAX_TIMESTAMP = -3
"""The record with the greatest timestamp."""

_FIRST_VERSION_WITH_MAX_TIMESTAMP = 7


class Isolation(IntEnum):
    """Which records of transactions a consumer sees."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ListedOffset(NamedTuple):
    """An answer. The offset is -1 where no record is as late as the time asked for; so is its timestamp (ms)."""

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    client: Client,
    wanted: Mapping[TopicPartition, int],
    *,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> dict[TopicPartition, ListedOffset]:
    """The offset of each partition for a timestamp (ms), or for LATEST, EARLIEST or MAX_TIMESTAMP.

    Raises the first KafkaError; UnsupportedApi where the broker is too old for MAX_TIMESTAMP (before Kafka 3.0).
    """

    async def ask(
        connection: Connection, partitions: dict[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | KafkaError]:
        if MAX_TIMESTAMP in partitions.values():
            connection.require(ListOffsetsRequest, _FIRST_VERSION_WITH_MAX_TIMESTAMP)
        topics: dict[str, ListOffsetsTopic] = {}
        for (topic, partition), timestamp in partitions.items():
            topics.setdefault(topic, ListOffsetsTopic(name=topic)).partitions.append(
                ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
            )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=list(topics.values()),
            timeout_ms=int(client.request_timeout * 1000),
        )
        response = await connection.call(request)
        answers: dict[TopicPartition, ListedOffset | KafkaError] = {}
        for answered in response.topics:
            for item in answered.partitions:
                where = answered.name, item.partition_index
                if item.error_code:
                    answers[where] = error_of(item.error_code, f"{where[0]}-{where[1]}")
                else:
                    answers[where] = ListedOffset(item.offset, item.timestamp, item.leader_epoch)
        return answers

    answers = await client.at_leaders(wanted, ask)
    found: dict[TopicPartition, ListedOffset] = {}
    for partition, answer in answers.items():
        if isinstance(answer, KafkaError):
            raise answer
        found[partition] = answer
    return found
