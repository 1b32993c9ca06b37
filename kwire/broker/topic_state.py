"""How a topic's partitions look from a listener: what Metadata and DescribeTopicPartitions tell of leaders."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.metadata.image import NO_LEADER, BrokerImage, Endpoint, MetadataImage, PartitionImage
from kwire.metadata.names import check_name
from kwire.protocol.errors import ErrorCode, KafkaError

Brokers = Mapping[int, BrokerImage]
"""The brokers of an image, by id."""


def live_brokers(image: MetadataImage, listener: str) -> list[tuple[BrokerImage, Endpoint]]:
    """The brokers that are not fenced and can be reached by a listener of that name, in order of their ids."""
    found = []
    for broker_id in sorted(image.brokers):
        broker = image.brokers[broker_id]
        endpoint = None if broker.fenced else broker.endpoint(listener)
        if endpoint is not None:
            found.append((broker, endpoint))
    return found


def is_reachable(brokers: Brokers, broker_id: int, listener: str) -> bool:
    """Whether the broker is there, not fenced, and has a listener of that name."""
    broker = brokers.get(broker_id)
    return broker is not None and not broker.fenced and broker.endpoint(listener) is not None


def offline_replicas(brokers: Brokers, partition: PartitionImage, listener: str) -> list[int]:
    """The replicas whose broker cannot be reached by a listener of that name, or whose log dir has failed there.

    Where nobody leads, that is so of the last who were in sync.
    """
    lost = partition.isr if partition.leader == NO_LEADER else ()
    return [
        replica for replica in partition.replicas if replica in lost or not is_reachable(brokers, replica, listener)
    ]


def in_sync_replicas(partition: PartitionImage) -> list[int]:
    """Nobody, where nobody leads: whose turn is next is not for clients."""
    return [] if partition.leader == NO_LEADER else list(partition.isr)


def leader_error(brokers: Brokers, partition: PartitionImage, listener: str) -> ErrorCode:
    """NONE, LEADER_NOT_AVAILABLE, or LISTENER_NOT_FOUND where the leader has no listener of that name."""
    leader = brokers.get(partition.leader)
    if leader is None or leader.fenced:
        return ErrorCode.LEADER_NOT_AVAILABLE
    if leader.endpoint(listener) is None:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.NONE


def missing_topic_error(name: str) -> ErrorCode:
    """Why there is no such topic: INVALID_TOPIC_EXCEPTION for an illegal name, else UNKNOWN_TOPIC_OR_PARTITION."""
    try:
        check_name(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
