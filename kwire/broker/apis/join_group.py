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


async def handle(
    broker: Broker, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | ParkedOperation:
    version = context.api_version
    if not context.session.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED, version)
    try:
        requests.check_join(broker.config, request)
    except KafkaError as error:
        return _refused(error.code, version, request.member_id)
    coordinators, who = broker.coordinators, caller(context)

    async def joined() -> JoinGroupResponse:
        try:
            response = await coordinators.write(
                request.group_id, lambda machine, now: requests.join(machine, who, request, now)
            )
        except KafkaError as error:
            return _refused(error.code, version)
        return _in_version(response, version)

    return ParkedOperation(joined)


def _refused(code: ErrorCode, version: int, member_id: str = "") -> JoinGroupResponse:
    return _in_version(JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None), version)


def _in_version(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if response.protocol_name is None and version < _NULL_PROTOCOL_FROM:
        response.protocol_name = ""
    return response


def failed(request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code, protocol_name="")
