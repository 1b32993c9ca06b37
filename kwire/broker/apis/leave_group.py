"""LeaveGroup (key 13): members leave their classic group, of themselves or by an admin (several at once from v3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.coordinators import caller
from kwire.coordinator.groups import requests
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    if not context.session.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    requests.check_group_id(request.group_id)
    who = caller(context)
    return await broker.coordinators.write(
        request.group_id, lambda machine, now: requests.leave(machine, who, request, now)
    )


def failed(request: LeaveGroupRequest, error: KafkaError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)
