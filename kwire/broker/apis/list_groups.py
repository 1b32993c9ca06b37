"""ListGroups (key 16): the groups this broker coordinates; by state from v4 (KIP-518), by type from v5 (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.admin import list_groups
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: ListGroupsRequest) -> ListGroupsResponse:
    states = {state.strip().lower() for state in request.states_filter}
    kinds = {kind.lower() for kind in request.types_filter}
    groups: list[ListedGroup] = []
    turn = Turn(broker.clock)
    for shard in list(broker.coordinators.groups.shards.values()):
        try:
            groups += shard.read(lambda machine, now: list_groups(machine, states, kinds))
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_COORDINATOR:  # one that is being loaded: the list would be incomplete
                raise
        await turn.share()
    session = context.session
    if not session.allows(Operation.DESCRIBE, ResourceType.CLUSTER):
        groups = [group for group in groups if session.allows(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)]
    return ListGroupsResponse(groups=groups)


def failed(request: ListGroupsRequest, error: KafkaError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)
