"""DeleteGroups (key 42): groups without members go, with their offsets (KIP-229)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.admin import delete_group
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    response, turn = DeleteGroupsResponse(), Turn(broker.clock)
    for group_id in dict.fromkeys(request.groups_names):
        code = await _delete(broker, context, group_id)
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=code))
        await turn.share()
    return response


def failed(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=error.code) for group_id in request.groups_names]
    )


async def _delete(broker: Broker, context: RequestContext, group_id: str) -> ErrorCode:
    if not context.session.allows(Operation.DELETE, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    try:
        await broker.coordinators.write(group_id, lambda machine, now: delete_group(machine, group_id))
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
