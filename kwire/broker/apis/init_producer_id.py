"""InitProducerId (key 22): an id for an idempotent or transactional producer (KIP-98).

v3 lets a producer bump its epoch itself (KIP-360); v4 tells fenced producers PRODUCER_FENCED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.fenced_producers import as_known_to
from kwire.coordinator.runtime.outcome import Producer
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_KNOWS_FENCED_FROM = 4


async def handle(broker: Broker, context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    session = context.session
    if request.transactional_id is not None:
        if not session.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not session.allows(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        producer = Producer(await broker.producer_ids.next(), 0)
    else:
        producer = await _transactional(broker, context, request, request.transactional_id)
    return InitProducerIdResponse(producer_id=producer.id, producer_epoch=producer.epoch)


async def _transactional(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest, transactional_id: str
) -> Producer:
    from kwire.coordinator.transactions.init_producer_id import check, init_producer_id

    timeout_ms = request.transaction_timeout_ms
    check(transactional_id, timeout_ms, broker.config["transaction.max.timeout.ms"])
    expected = None if request.producer_id == -1 else Producer(request.producer_id, request.producer_epoch)
    try:
        return await broker.coordinators.transactions.write(
            transactional_id,
            lambda machine, now, new_producer_id: init_producer_id(
                machine, now, transactional_id, timeout_ms, expected, new_producer_id=new_producer_id
            ),
        )
    except KafkaError as error:
        raise as_known_to(context, _KNOWS_FENCED_FROM, error) from error


def failed(request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
