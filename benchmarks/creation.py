"""Topics with partitions by the thousand, and a batch in each of them: by large requests of kwire's client."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import trio

from benchmarks.client import connect
from kwire.client.connection import Connection
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record

PATIENCE_S = 300.0

_MOST_CREATED = 5_000
"""Partitions in one request: Apache Kafka writes at most 10,000 records of metadata for one."""

_AT_ONCE = 500
"""Partitions in one produce request."""

_BY_NAME = 12
"""The newest version of Produce that names topics."""

_PAUSE_S = 0.02


async def create(bootstrap: str, topics: Sequence[str], each: int) -> None:
    """Creates topics of `each` partitions, and returns when the last partition of each can be produced to.

    Raises RuntimeError where the broker refuses.
    """
    connection = await connect(bootstrap, PATIENCE_S)
    timeout_ms = int(PATIENCE_S * 1000)
    at_once = max(_MOST_CREATED // each, 1)
    for first in range(0, len(topics), at_once):
        wanted = [
            CreatableTopic(name=name, num_partitions=min(each, _MOST_CREATED), replication_factor=1)
            for name in topics[first : first + at_once]
        ]
        created = await connection.call(CreateTopicsRequest(timeout_ms=timeout_ms, topics=wanted))
        _check(created.topics)
    for count in range(2 * _MOST_CREATED, each + 1, _MOST_CREATED):
        more = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name in topics]
        _check((await connection.call(CreatePartitionsRequest(timeout_ms=timeout_ms, topics=more))).results)
    for name in topics:
        await _produce(connection, name, range(each - 1, each))
    connection.close()


async def write_each(bootstrap: str, topics: Sequence[str], each: int) -> None:
    """A batch of one record of 100 B to each partition."""
    connection = await connect(bootstrap, PATIENCE_S)
    for name in topics:
        for first in range(0, each, _AT_ONCE):
            await _produce(connection, name, range(first, min(first + _AT_ONCE, each)))
    connection.close()


async def _produce(connection: Connection, topic: str, indexes: range) -> None:
    """Returns when all took the batch, however often a broker has to be asked that has not made them yet."""
    batch = build_batch([Record(0, int(time.time() * 1000), None, b"x" * 100, [])])
    data = [PartitionProduceData(index=index, records=batch) for index in indexes]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    with trio.fail_after(PATIENCE_S):
        while True:
            answer = await connection.call(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), _BY_NAME)
            if not any(told.error_code for told in answer.responses[0].partition_responses):
                return
            await trio.sleep(_PAUSE_S)


def _check(results: Sequence[Any]) -> None:
    errors = {result.error_code for result in results} - {0}
    if errors:
        raise RuntimeError(f"creation failed with {errors}")
