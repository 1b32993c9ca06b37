"""SyncGroup (key 14): the leader of a classic group hands in the assignment, every member gets its own.

v5 must say the protocol's type and name (KIP-559).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.operation import ParkedOperation
from kwire.coordinator.groups import requests
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_SAYS_PROTOCOL_FROM = 5
"""From this version on members say which protocol they believe to have been selected (KIP-559)."""


async def handle(broker: Broker, context: RequestContext, request: SyncGroupRequest) -> ParkedOperation:
    says_protocol = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= _SAYS_PROTOCOL_FROM and not says_protocol:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not context.session.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    requests.check_group_id(request.group_id)
    coordinators = broker.coordinators
    return ParkedOperation(
        lambda: coordinators.write(request.group_id, lambda machine, now: requests.sync(machine, request, now))
    )


def failed(request: SyncGroupRequest, error: KafkaError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error.code)
