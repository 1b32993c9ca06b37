"""AddPartitionsToTxn (key 24): partitions take part in a transaction (KIP-98).

Up to v3 a producer asks, for one transaction; from v4 on brokers do, for several, and may only look whether the
partitions take part (KIP-890). v2 tells fenced producers PRODUCER_FENCED.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kwire.broker.fenced_producers import as_known_to
from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.partitions import add_partitions
from kwire.metadata.names import INTERNAL_TOPICS
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kwire.protocol.types import TopicPartition
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_KNOWS_FENCED_FROM = 2
_BROKERS_FROM = 4

Codes = dict[TopicPartition, ErrorCode]


async def handle(
    broker: Broker, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    if context.api_version < _BROKERS_FROM:
        topics = request.v3_and_below_topics
        codes = await _of_a_client(broker, context, request)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, codes))
    if not context.session.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    response, turn = AddPartitionsToTxnResponse(), Turn(broker.clock)
    for transaction in request.transactions:
        codes = await _of_a_broker(broker, transaction)
        response.results_by_transaction.append(
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=_results(transaction.topics, codes)
            )
        )
        await turn.share()
    return response


def failed(request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    topics = request.v3_and_below_topics
    return AddPartitionsToTxnResponse(
        error_code=error.code,
        results_by_topic_v3_and_below=_results(topics, dict.fromkeys(_partitions(topics), error.code)),
    )


async def _of_a_client(broker: Broker, context: RequestContext, request: AddPartitionsToTxnRequest) -> Codes:
    transactional_id = request.v3_and_below_transactional_id
    session = context.session
    partitions = _partitions(request.v3_and_below_topics)
    if not session.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    writable = {
        topic
        for topic, _ in partitions
        if topic not in INTERNAL_TOPICS and session.allows(Operation.WRITE, ResourceType.TOPIC, topic)
    }
    refused = _refused(broker, partitions, writable)
    if refused:
        return refused
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    try:
        await broker.coordinators.transactions.write_when_complete(
            transactional_id,
            lambda machine, now, _: add_partitions(machine, now, transactional_id, producer, partitions, 0),
        )
    except KafkaError as error:
        raise as_known_to(context, _KNOWS_FENCED_FROM, error) from error
    return dict.fromkeys(partitions, ErrorCode.NONE)


async def _of_a_broker(broker: Broker, transaction: AddPartitionsToTxnTransaction) -> Codes:
    partitions = _partitions(transaction.topics)
    refused = _refused(broker, partitions, {topic for topic, _ in partitions})
    if refused:
        return refused
    if not transaction.transactional_id:
        return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
    codes = await broker.coordinators.transactions.add_partitions(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        partitions,
        verify_only=transaction.verify_only,
    )
    if ErrorCode.UNSUPPORTED_VERSION in codes.values():
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)  # of the whole request, as Apache Kafka
    return codes


def _refused(broker: Broker, partitions: Collection[TopicPartition], writable: Collection[str]) -> Codes:
    """Why nothing of it is done: a partition may not be written to, or does not exist. Empty where all is well."""
    image = broker.store.image
    codes: Codes = {}
    for topic, index in partitions:
        if topic not in writable:
            codes[topic, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif image.partition(topic, index) is None:
            codes[topic, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not codes:
        return {}
    return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | codes


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _results(topics: list[AddPartitionsToTxnTopic], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=codes[topic.name, index])
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
