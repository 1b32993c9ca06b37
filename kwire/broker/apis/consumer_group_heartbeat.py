"""ConsumerGroupHeartbeat (key 68): a member of a group of the consumer protocol is alive and reconciles (KIP-848).

v1 lets the client make the member id (KIP-1082) and brought regular expressions of RE2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.coordinators import caller
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    from kwire.coordinator.groups.consumer.heartbeat import heartbeat
    from kwire.coordinator.groups.consumer.validation import check_heartbeat

    session = context.session
    if not broker.coordinators.have_consumer_protocol:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if not session.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def may_describe(topic: str) -> bool:
        return session.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic)

    if not all(may_describe(topic) for topic in request.subscribed_topic_names or ()):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    check_heartbeat(request, context.api_version, broker.config["group.consumer.assignors"])
    who = caller(context)
    return await broker.coordinators.write(
        request.group_id, lambda machine, now: heartbeat(machine, who, request, may_describe, now)
    )


def failed(request: ConsumerGroupHeartbeatRequest, error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
