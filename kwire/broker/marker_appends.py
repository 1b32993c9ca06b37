"""Markers that end transactions, appended to partitions that this broker leads (WriteTxnMarkers, KIP-98).

A partition of __consumer_offsets gets its marker through the group coordinator, for which the offsets that the
transaction brought become visible with it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import trio

from kwire.cluster.partition import ALL, Appended, Partition
from kwire.cluster.waiting import ReplicationWait
from kwire.coordinator.runtime.outcome import Marker, Outcome, Producer
from kwire.metadata.names import CONSUMER_OFFSETS
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.types import TopicPartition
from kwire.storage.validated import Origin

if TYPE_CHECKING:
    from kwire.broker.broker import Broker

Results = dict[TopicPartition, ErrorCode]


class EndMarker(NamedTuple):
    """What a marker says, and the transaction.version by which its epoch is checked."""

    producer: Producer
    commit: bool
    coordinator_epoch: int
    transaction_version: int


async def append_markers(broker: Broker, marker: EndMarker, partitions: Collection[TopicPartition]) -> Results:
    """Appends the marker to each partition; what became of it, once it is on all in-sync replicas.

    UNKNOWN_TOPIC_OR_PARTITION where this broker has no replica, or none that is online; else the errors of an append
    with acks=all.
    """
    results: Results = {}
    appends: list[tuple[TopicPartition, Partition, Appended]] = []
    through_groups: list[TopicPartition] = []
    blob = build_end_txn_marker(
        marker.producer.id,
        marker.producer.epoch,
        commit=marker.commit,
        coordinator_epoch=marker.coordinator_epoch,
        timestamp=broker.clock.wall_ms(),
    )
    turn = Turn(broker.clock)
    for partition in partitions:
        found = broker.replicas.partitions.get(partition)
        if found is None or found.log is None:
            results[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif partition[0] == CONSUMER_OFFSETS:
            through_groups.append(partition)
        else:
            try:
                appended = await found.append(
                    blob, ALL, origin=Origin.COORDINATOR, transaction_version=marker.transaction_version
                )
            except KafkaError as error:
                results[partition] = error.code
            else:
                appends.append((partition, found, appended))
            await turn.share()
    if through_groups:
        async with trio.open_nursery() as nursery:
            for partition in through_groups:
                nursery.start_soon(_through_group, broker, marker, partition, results)
            results |= await _replicated(broker, appends)
    else:
        results |= await _replicated(broker, appends)
    return results


async def _replicated(broker: Broker, appends: list[tuple[TopicPartition, Partition, Appended]]) -> Results:
    wait = ReplicationWait([(found, appended) for _, found, appended in appends])
    codes = await wait.finish(broker.config["request.timeout.ms"] / 1000)
    return {partition: code for (partition, _, _), code in zip(appends, codes, strict=True)}


async def _through_group(broker: Broker, marker: EndMarker, partition: TopicPartition, results: Results) -> None:
    shard = broker.coordinators.groups.shards.get(partition[1])
    if shard is None:
        results[partition] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return
    ends = Marker(marker.producer, marker.commit, marker.coordinator_epoch, marker.transaction_version)
    try:
        await shard.write(lambda machine, now: Outcome(None, marker=ends))
    except KafkaError as error:
        results[partition] = _of_a_group(error.code)
    else:
        results[partition] = ErrorCode.NONE


def _of_a_group(code: ErrorCode) -> ErrorCode:
    """The transaction coordinator knows the errors of appends only."""
    if code in (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    ):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return code
