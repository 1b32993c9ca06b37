"""DescribeTopicPartitions (key 75): topics with their partitions, page by page (KIP-966).

Topics come in the order of their names; at most `max.request.partition.size.limit` partitions an answer, the cursor
says where the next one starts. Eligible leader replicas are always empty: kwire elects from the ISR only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.topic_state import Brokers, in_sync_replicas, leader_error, missing_topic_error, offline_replicas
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kwire.metadata.names import INTERNAL_TOPICS
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.broker.session import Session


async def handle(
    broker: Broker, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image, session, cursor = broker.store.image, context.session, request.cursor
    asked = {topic.name for topic in request.topics}
    if cursor is not None:
        if asked and cursor.topic_name not in asked:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The cursor's topic is not among those asked for.")
        if cursor.partition_index < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The cursor's partition index is negative.")
    response = DescribeTopicPartitionsResponse()
    refused = []
    room = max(min(request.response_partition_limit, broker.config["max.request.partition.size.limit"]), 1)
    for name in sorted(asked or image.topics):
        if cursor is not None and name < cursor.topic_name:
            continue
        if not session.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            if asked:
                refused.append(_missing(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        if not room:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            told = _missing(name, missing_topic_error(name))
            told.topic_authorized_operations = session.authorized_operations(ResourceType.TOPIC, name)
            response.topics.append(told)
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        end = min(first + room, len(topic.partitions))
        response.topics.append(_topic(image, topic, range(first, end), session))
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
        room -= max(end - first, 0)
    response.topics += refused
    return response


def failed(request: DescribeTopicPartitionsRequest, error: KafkaError) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=[_missing(topic.name, error.code) for topic in request.topics])


def _missing(name: str, error: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name, is_internal=name in INTERNAL_TOPICS)


def _topic(
    image: MetadataImage, topic: TopicImage, indexes: range, session: Session
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image.brokers, index, topic.partitions[index], session.listener) for index in indexes],
        topic_authorized_operations=session.authorized_operations(ResourceType.TOPIC, topic.name),
    )


def _partition(
    brokers: Brokers, index: int, partition: PartitionImage, listener: str
) -> DescribeTopicPartitionsResponsePartition:
    error = leader_error(brokers, partition, listener)
    return DescribeTopicPartitionsResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=partition.leader if error is ErrorCode.NONE else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=in_sync_replicas(partition),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=offline_replicas(brokers, partition, listener),
    )
