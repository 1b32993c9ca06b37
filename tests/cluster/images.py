"""Small metadata images for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kwire.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def topic(name: str, *partitions: PartitionImage) -> TopicImage:
    return TopicImage(name, topic_id(name), partitions)


def with_leader(partition: PartitionImage, leader: int, isr: tuple[int, ...] | None = None) -> PartitionImage:
    """The partition led by `leader` (NO_LEADER for none) from now on, with this ISR (as it is by default)."""
    return replace(
        partition,
        leader=leader,
        isr=partition.isr if isr is None else isr,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
    )


def image(*topics: TopicImage, brokers: Sequence[int] = (1, 2, 3), fenced: Sequence[int] = ()) -> MetadataImage:
    return MetadataImage(
        version=1,
        cluster_id="test",
        controller_id=brokers[0] if brokers else -1,
        brokers={i: BrokerImage(i, epoch=10 + i, endpoints=(), rack=None, fenced=i in fenced) for i in brokers},
        topics={topic.name: topic for topic in topics},
        topic_names={topic.id: topic.name for topic in topics},
    )
