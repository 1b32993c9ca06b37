"""DescribeGroups (key 15): the members of classic groups and what they are assigned.

From v6 a missing group is an error (KIP-1043); before, it was one in state Dead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.admin import describe_group
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_MISSING_IS_ERROR_FROM = 6
_DEAD = "Dead"


async def handle(broker: Broker, context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    groups, turn = [], Turn(broker.clock)
    for group_id in request.groups:
        group = _describe(broker, context, group_id)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = context.session.authorized_operations(ResourceType.GROUP, group_id)
        groups.append(group)
        await turn.share()
    return DescribeGroupsResponse(groups=groups)


def failed(request: DescribeGroupsRequest, error: KafkaError) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[_failed(group_id, error.code) for group_id in request.groups])


def _describe(broker: Broker, context: RequestContext, group_id: str) -> DescribedGroup:
    if not context.session.allows(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        return _failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        shard = broker.coordinators.groups.shard_of(group_id)
        return shard.read(lambda machine, now: describe_group(machine, group_id))
    except KafkaError as error:
        if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            return _failed(group_id, error.code)
        missing = DescribedGroup(group_id=group_id, group_state=_DEAD)
        if context.api_version >= _MISSING_IS_ERROR_FROM:
            missing.error_code, missing.error_message = error.code, error.message
        return missing


def _failed(group_id: str, code: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=code)
