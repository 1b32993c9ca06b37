"""How much of each partition lies in which log dir of which broker (KIP-113)."""

from __future__ import annotations

from typing import NamedTuple

from kwire.client.client import Client
from kwire.client.metadata import check
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


async def replica_sizes(client: Client) -> list[ReplicaSize]:
    """Those of all brokers, except in log dirs that are offline. Raises KafkaError, ClientError."""

    async def ask_all() -> list[ReplicaSize]:
        await client.refresh()
        sizes = []
        for broker in sorted(client.metadata.brokers):
            sizes += _sizes(broker, await client.call(DescribeLogDirsRequest(topics=None), broker=broker))
        return sizes

    return await client.retrying(ask_all)


def _sizes(broker: int, answer: DescribeLogDirsResponse) -> list[ReplicaSize]:
    check(answer.error_code, f"broker {broker}")
    return [
        ReplicaSize(broker, found.log_dir, topic.name, each.partition_index, each.partition_size, each.is_future_key)
        for found in answer.results
        for topic in found.topics
        for each in topic.partitions
    ]
