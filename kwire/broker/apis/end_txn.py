"""EndTxn (key 26): commits or aborts a transaction.

v2 tells fenced producers PRODUCER_FENCED; v5 is for clients of transaction version 2 and tells them the producer id and
epoch of their next transaction (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.fenced_producers import as_known_to
from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.end_txn import end_txn
from kwire.coordinator.transactions.transaction import EPOCH_BUMP
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_KNOWS_FENCED_FROM = 2
_BUMPS_EPOCH_FROM = 5


async def handle(broker: Broker, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    transactional_id = request.transactional_id
    if not context.session.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    producer = Producer(request.producer_id, request.producer_epoch)
    client_version = EPOCH_BUMP if context.api_version >= _BUMPS_EPOCH_FROM else 0
    try:
        goes_on_as = await broker.coordinators.transactions.write(
            transactional_id,
            lambda machine, now, new_producer_id: end_txn(
                machine,
                now,
                transactional_id,
                producer,
                client_version,
                commit=request.committed,
                new_producer_id=new_producer_id,
            ),
        )
    except KafkaError as error:
        raise as_known_to(context, _KNOWS_FENCED_FROM, error) from error
    return EndTxnResponse(producer_id=goes_on_as.id, producer_epoch=goes_on_as.epoch)


def failed(request: EndTxnRequest, error: KafkaError) -> EndTxnResponse:
    return EndTxnResponse(error_code=error.code)
