"""FindCoordinator (key 10): which broker coordinates a group, a transactional id or a share partition.

This version of kwire has no share groups, whose answer is COORDINATOR_NOT_AVAILABLE. v1 brought transactional ids, v4
many keys at once (KIP-699), v6 share partitions (KIP-932).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.metadata.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from kwire.ports.turns import Turn
from kwire.protocol.errors import MALFORMED, ErrorCode, KafkaError
from kwire.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_MANY_KEYS = 4
_SHARE_PARTITIONS = 6
_NO_ERROR = "NONE"
"""What the answers for one key say where nothing is wrong."""


async def handle(broker: Broker, context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if context.api_version < _MANY_KEYS:
        found = await _answer(broker, context, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message or ("" if found.error_code else _NO_ERROR),
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    response, turn = FindCoordinatorResponse(), Turn(broker.clock)
    for key in request.coordinator_keys:
        response.coordinators.append(await _answer(broker, context, request.key_type, key))
        await turn.share()
    return response


def failed(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    if request.coordinator_keys:
        return FindCoordinatorResponse(coordinators=[_refused(key, error) for key in request.coordinator_keys])
    return FindCoordinatorResponse(error_code=error.code, error_message=error.message, node_id=-1, host="", port=-1)


async def _answer(broker: Broker, context: RequestContext, key_type: int, key: str) -> Coordinator:
    try:
        found = await broker.coordinators.find(_topic(context, key_type, key), key)
        endpoint = found.endpoint(context.session.listener)
        if endpoint is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    except KafkaError as error:
        return _refused(key, error)
    return Coordinator(key=key, node_id=found.id, host=endpoint.host, port=endpoint.port, error_message="")


def _topic(context: RequestContext, key_type: int, key: str) -> str:
    """The internal topic that keeps the state of such a key."""
    session = context.session
    if key_type == _GROUP:
        if not session.allows(Operation.DESCRIBE, ResourceType.GROUP, key):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return CONSUMER_OFFSETS
    if key_type == _TRANSACTION:
        if not session.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return TRANSACTION_STATE
    if key_type == _SHARE and context.api_version >= _SHARE_PARTITIONS:
        if not session.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    silent = key_type == _SHARE and context.api_version >= _MANY_KEYS
    raise KafkaError(ErrorCode.INVALID_REQUEST, "" if silent else MALFORMED)


def _refused(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error.code, error_message=error.message)
