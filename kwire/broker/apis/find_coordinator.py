"""FindCoordinator (key 10): which broker coordinates a group, a transactional id or a share partition.

This version of kwire has no coordinators, so the answer to every key is COORDINATOR_NOT_AVAILABLE. The API is listed
all the same: librdkafka believes in LZ4 only where a broker lists it. v1 brought transactional ids, v4 many keys at
once (KIP-699), v6 share partitions (KIP-932).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kwire.protocol.errors import MALFORMED, ErrorCode, KafkaError
from kwire.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_MANY_KEYS = 4
_SHARE_PARTITIONS = 6
_NONE = "This version of kwire has no group or transaction coordinator."

logger = logging.getLogger(__name__)


async def handle(broker: Broker, context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if context.api_version < _MANY_KEYS:
        return failed(request, _answer(broker, context, request.key_type, request.key))
    return FindCoordinatorResponse(
        coordinators=[
            _coordinator(key, _answer(broker, context, request.key_type, key)) for key in request.coordinator_keys
        ]
    )


def failed(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    if request.coordinator_keys:
        return FindCoordinatorResponse(coordinators=[_coordinator(key, error) for key in request.coordinator_keys])
    return FindCoordinatorResponse(error_code=error.code, error_message=error.message, node_id=-1, host="", port=-1)


def _answer(broker: Broker, context: RequestContext, key_type: int, key: str) -> KafkaError:
    session = context.session
    if key_type == _GROUP:
        if not session.allows(Operation.DESCRIBE, ResourceType.GROUP, key):
            return KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    elif key_type == _TRANSACTION:
        if not session.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif key_type == _SHARE and context.api_version >= _SHARE_PARTITIONS:
        if not session.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            return KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        silent = key_type == _SHARE and context.api_version >= _MANY_KEYS
        return KafkaError(ErrorCode.INVALID_REQUEST, "" if silent else MALFORMED)
    if _NONE not in broker.warned:
        broker.warned.add(_NONE)
        logger.warning("coordinator not available client=%s key=%r reason=%r", session.client_host, key, _NONE)
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, _NONE)


def _coordinator(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.message)
