"""DescribeTransactions (key 65): the state of transactional ids that this broker coordinates (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.transactions.listing import describe_transaction
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.broker.session import Session


async def handle(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    response, turn = DescribeTransactionsResponse(), Turn(broker.clock)
    for transactional_id in request.transactional_ids:
        try:
            response.transaction_states.append(_described(broker, context.session, transactional_id))
        except KafkaError as error:
            response.transaction_states.append(_refused(transactional_id, error))
        await turn.share()
    return response


def failed(request: DescribeTransactionsRequest, error: KafkaError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_refused(transactional_id, error) for transactional_id in request.transactional_ids]
    )


def _described(broker: Broker, session: Session, transactional_id: str) -> TransactionState:
    if not session.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    shard = broker.coordinators.transactions.coordinator.shard_of(transactional_id)
    found = shard.read(lambda machine, now: describe_transaction(machine, transactional_id))
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(found.partitions):
        if topic in topics or session.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic):
            topics.setdefault(topic, TopicData(topic=topic)).partitions.append(index)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.title,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=list(topics.values()),
    )


def _refused(transactional_id: str, error: KafkaError) -> TransactionState:
    return TransactionState(error_code=error.code, transactional_id=transactional_id)
