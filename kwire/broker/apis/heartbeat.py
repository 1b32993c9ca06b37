"""Heartbeat (key 12): a member of a classic group is alive, and learns of a rebalance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups import requests
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    if not context.session.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    requests.check_group_id(request.group_id)
    coordinators = broker.coordinators
    try:
        return await coordinators.write(
            request.group_id, lambda machine, now: requests.heartbeat(machine, request, now)
        )
    except KafkaError as error:
        if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()  # the member is most likely there: it need not do anything about it
        raise


def failed(request: HeartbeatRequest, error: KafkaError) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error.code)
