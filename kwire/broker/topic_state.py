"""How a topic's partitions look from a listener: what Metadata and DescribeTopicPartitions tell of leaders."""

from __future__ import annotations

from kwire.metadata.image import BrokerImage, Endpoint, MetadataImage, PartitionImage
from kwire.metadata.names import check_name
from kwire.protocol.errors import ErrorCode, KafkaError


def live_brokers(image: MetadataImage, listener: str) -> list[tuple[BrokerImage, Endpoint]]:
    """The brokers that are not fenced and can be reached by a listener of that name, in order of their ids."""
    found = []
    for broker_id in sorted(image.brokers):
        broker = image.brokers[broker_id]
        endpoint = None if broker.fenced else broker.endpoint(listener)
        if endpoint is not None:
            found.append((broker, endpoint))
    return found


def is_live(image: MetadataImage, broker_id: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced


def offline_replicas(image: MetadataImage, partition: PartitionImage) -> list[int]:
    """The replicas whose broker is not there."""
    return [replica for replica in partition.replicas if not is_live(image, replica)]


def leader_error(image: MetadataImage, partition: PartitionImage, listener: str) -> ErrorCode:
    """NONE, LEADER_NOT_AVAILABLE, or LISTENER_NOT_FOUND where the leader has no listener of that name."""
    leader = image.brokers.get(partition.leader)
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
