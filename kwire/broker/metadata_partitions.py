"""The partitions of topics as Metadata tells them. Those of large topics are made and encoded once for many requests.

A topic of 1,000 partitions takes milliseconds to tell, and nothing of it depends on who asks: only on the topic, the
brokers there are, the listener and the version. So the bytes are kept as long as these stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple, cast

from kwire.broker.topic_state import Brokers, in_sync_replicas, is_reachable, leader_error, offline_replicas
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kwire.ports.turns import Turn
from kwire.protocol import codec
from kwire.protocol.codec.lasting import LastingItems
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

LARGE = 16
"""Partitions from which on a topic is kept: a smaller one is told in a moment, and would cost more memory than that."""

MOST_KEPT = 100_000
"""Partitions kept in all, which is about 3 MB. Beyond it all are let go, and those in demand come back."""


_AT_ONCE = 500
"""Partitions encoded before others have their turn."""


class _Kept(NamedTuple):
    topic: TopicImage
    brokers: Brokers
    partitions: LastingItems


class MetadataPartitions:
    """Tells the partitions of a topic, for MetadataResponseTopic."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, int], _Kept] = {}
        """By topic name, listener and version."""
        self._size = 0

    def of(
        self, image: MetadataImage, topic: TopicImage, listener: str, version: int
    ) -> list[MetadataResponsePartition]:
        """The partitions as a client of that listener is told in that version.

        Of a large topic the list is one to be encoded only: LastingItems.
        """
        count = len(topic.partitions)
        if count < LARGE:
            return list(_told(image.brokers, topic, listener, version))
        key = (topic.name, listener, version)
        kept = self._kept.get(key)
        if kept is not None and kept.topic is topic and kept.brokers is image.brokers:
            return cast("list[MetadataResponsePartition]", kept.partitions)
        if kept is not None:
            self._size -= len(kept.partitions)
        if self._size + count > MOST_KEPT:
            self._kept.clear()
            self._size = 0
        # Of the image only what is needed is held on to: a whole one would keep all topics as they were.
        brokers = image.brokers
        partitions = LastingItems(count, lambda: _told(brokers, topic, listener, version))
        self._kept[key] = _Kept(topic, brokers, partitions)
        self._size += count
        return cast("list[MetadataResponsePartition]", partitions)


async def encode_in_turns(topic: MetadataResponseTopic, version: int, turn: Turn) -> None:
    """Makes the bytes of a large topic's partitions, if they are not kept, and lets others run in between.

    Encoding the answer would make them as well, but in one go: 4 ms for 1,000 partitions.
    """
    partitions = cast("list[MetadataResponsePartition] | LastingItems", topic.partitions)
    if not isinstance(partitions, LastingItems) or version in partitions.encoded or len(partitions) <= _AT_ONCE:
        return
    parts = []
    told = iter(partitions)
    for first in range(0, len(partitions), _AT_ONCE):
        some = list(islice(told, _AT_ONCE))
        part = LastingItems(len(some), lambda items=some: items)  # type: ignore[misc]
        listed = cast("list[MetadataResponsePartition]", part)
        codec.encode(MetadataResponse(topics=[MetadataResponseTopic(name="", partitions=listed)]), version)
        parts.append(part.encoded[version])
        if first + _AT_ONCE < len(partitions):
            await turn.share()
    partitions.encoded[version] = b"".join(parts)


def _told(brokers: Brokers, topic: TopicImage, listener: str, version: int) -> Iterator[MetadataResponsePartition]:
    for index, partition in enumerate(topic.partitions):
        yield _partition(brokers, index, partition, listener, version)


def _partition(
    brokers: Brokers, index: int, partition: PartitionImage, listener: str, version: int
) -> MetadataResponsePartition:
    error = leader_error(brokers, partition, listener)
    replicas, in_sync = list(partition.replicas), in_sync_replicas(partition)
    if version == 0:
        # The oldest clients take every replica named for one that they can reach.
        replicas = [replica for replica in replicas if is_reachable(brokers, replica, listener)]
        in_sync = [replica for replica in in_sync if is_reachable(brokers, replica, listener)]
        if error is ErrorCode.NONE and len(replicas) < len(partition.replicas):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
    if error is ErrorCode.LISTENER_NOT_FOUND and version < 6:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=-1 if error in (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LISTENER_NOT_FOUND) else partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=in_sync,
        offline_replicas=offline_replicas(brokers, partition, listener),
    )
