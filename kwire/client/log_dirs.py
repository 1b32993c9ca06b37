"""The log dirs of the brokers: how much of each partition lies where, and moving replicas between them (KIP-113)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.client.client import Client
from kwire.client.metadata import check
from kwire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kwire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


class ReplicaSize(NamedTuple):
    """One replica; its size in bytes is that of its segments, without their indexes."""

    broker: int
    log_dir: str
    topic: str
    partition: int
    size: int
    is_future: bool
    """It is on its way to this dir from another one."""
    lag: int
    """Of one on its way: offsets that are not there yet."""


class LogDirState(NamedTuple):
    """One log dir."""

    broker: int
    path: str
    error_code: int
    """0, or why nothing is known of it: KAFKA_STORAGE_ERROR where it is offline."""
    total_bytes: int
    usable_bytes: int
    """Of its volume; -1 where the broker does not say so (before Kafka 3.3)."""
    replicas: list[ReplicaSize]


async def log_dirs(client: Client) -> list[LogDirState]:
    """Those of all brokers. Raises KafkaError, ClientError."""

    async def ask_all() -> list[LogDirState]:
        await client.refresh()
        found = []
        for broker in sorted(client.metadata.brokers):
            found += _states(broker, await client.call(DescribeLogDirsRequest(topics=None), broker=broker))
        return found

    return await client.retrying(ask_all)


async def replica_sizes(client: Client) -> list[ReplicaSize]:
    """Those of all brokers, except in log dirs that are offline. Raises KafkaError, ClientError."""
    return [replica for log_dir in await log_dirs(client) for replica in log_dir.replicas]


async def move_replicas(client: Client, broker: int, topic: str, partitions: Sequence[int], path: str) -> None:
    """Has a broker begin to move replicas to its log dir of that path; to the one where one is, ends its move.

    Raises KafkaError for the first that is refused, ClientError.
    """
    moved = AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[moved])])

    async def ask() -> None:
        await client.refresh()
        response = await client.call(request, broker=broker)
        for result in response.results:
            for each in result.partitions:
                check(each.error_code, f"{result.topic_name}-{each.partition_index} to {path} of broker {broker}")

    await client.retrying(ask, unknown_topic_grace=0)


def _states(broker: int, answer: DescribeLogDirsResponse) -> list[LogDirState]:
    check(answer.error_code, f"broker {broker}")
    return [
        LogDirState(
            broker,
            found.log_dir,
            found.error_code,
            found.total_bytes,
            found.usable_bytes,
            [
                ReplicaSize(
                    broker,
                    found.log_dir,
                    topic.name,
                    each.partition_index,
                    each.partition_size,
                    each.is_future_key,
                    each.offset_lag,
                )
                for topic in found.topics
                for each in topic.partitions
            ],
        )
        for found in answer.results
    ]
