"""JoinGroup (key 11): a member joins its classic group and waits for the others.

v4 gives a new member its id first (KIP-394), v5 brought static members (KIP-345), v9 spares a static leader that comes
back the assignment (KIP-814).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.coordinators import caller
from kwire.broker.operation import ParkedOperation
from kwire.coordinator.groups import requests
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_NULL_PROTOCOL_FROM = 7


async def handle(broker: Broker, context: RequestContext, request: JoinGroupRequest) -> ParkedOperation:
    allowed = context.session.allows(Operation.READ, ResourceType.GROUP, request.group_id)
    coordinators, who = broker.coordinators, caller(context)

    async def joined() -> JoinGroupResponse:
        try:
            if not allowed:
                raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            response = await coordinators.write(
                request.group_id, lambda machine, now: requests.join(machine, who, request, now)
            )
        except KafkaError as error:
            response = JoinGroupResponse(error_code=error.code, protocol_name=None)
        if response.protocol_name is None and context.api_version < _NULL_PROTOCOL_FROM:
            response.protocol_name = ""
        return response

    return ParkedOperation(joined)


def failed(request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code, protocol_name="")
