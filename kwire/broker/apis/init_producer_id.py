"""InitProducerId (key 22): an id for an idempotent producer (KIP-98).

A transactional id belongs to the transaction coordinator, which this version of kwire does not have; the answer is
INVALID_REQUEST, which no client retries. v3 lets a producer bump its epoch itself (KIP-360).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    session = context.session
    if request.transactional_id is not None:
        if not session.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not session.allows(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return InitProducerIdResponse(producer_id=await broker.producer_ids.next(), producer_epoch=0)


def failed(request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
