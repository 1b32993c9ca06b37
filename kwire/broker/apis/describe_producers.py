"""DescribeProducers (key 61): the idempotent producers a partition remembers (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.metadata.names import check_name
from kwire.ports.turns import Turn
from kwire.protocol.errors import UNAUTHORIZED, ErrorCode, KafkaError
from kwire.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.broker.session import Session
    from kwire.storage.producer_entry import ProducerEntry


async def handle(
    broker: Broker, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    response, turn = DescribeProducersResponse(), Turn(broker.clock)
    for topic in request.topics:
        told = TopicResponse(name=topic.name)
        refused = _topic_error(broker, context.session, topic.name)
        for index in topic.partition_indexes:
            if refused is not None:
                told.partitions.append(_error(index, refused))
                continue
            try:
                log = broker.replicas.partition(topic.name, index).local_log()
            except KafkaError as error:
                told.partitions.append(PartitionResponse(partition_index=index, error_code=error.code))
            else:
                partition = PartitionResponse(partition_index=index)
                for entry in list(log.producer_state.entries.values()):
                    partition.active_producers.append(_producer(entry))
                    await turn.share()
                told.partitions.append(partition)
            await turn.share()
        response.topics.append(told)
    return response


def _topic_error(broker: Broker, session: Session, topic: str) -> KafkaError | None:
    """Why nothing of the topic is told."""
    try:
        check_name(topic)
    except KafkaError as error:
        return error
    if not session.allows(Operation.READ, ResourceType.TOPIC, topic):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return KafkaError(code, UNAUTHORIZED[code])
    if topic not in broker.store.image.topics:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return None


def failed(request: DescribeProducersRequest, error: KafkaError) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(name=topic.name, partitions=[_error(index, error) for index in topic.partition_indexes])
            for topic in request.topics
        ]
    )


def _error(index: int, error: KafkaError) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)


def _producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.txn_first_offset,
    )
