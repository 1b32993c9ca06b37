"""ConsumerGroupDescribe (key 69): the state and the members of groups of the consumer protocol (KIP-848).

v1 tells which members speak the classic protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.runtime.outcome import Outcome
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    if not broker.coordinators.have_consumer_protocol:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    session = context.session
    groups, refused, turn = [], [], Turn(broker.clock)
    for group_id in request.group_ids:
        if not session.allows(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(_failed(group_id, KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)))
            continue
        try:
            group = await _described(broker, context, group_id)
        except KafkaError as error:
            group = _failed(group_id, error)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = session.authorized_operations(ResourceType.GROUP, group_id)
        groups.append(group)
        await turn.share()
    return ConsumerGroupDescribeResponse(groups=refused + groups)


def failed(request: ConsumerGroupDescribeRequest, error: KafkaError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=[_failed(group_id, error) for group_id in request.group_ids])


async def _described(broker: Broker, context: RequestContext, group_id: str) -> DescribedGroup:
    from kwire.coordinator.groups.consumer.describing import describe

    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    # A write without records: the answer leaves when everything it tells of is committed.
    group = await broker.coordinators.write(group_id, lambda machine, now: Outcome(describe(machine, group_id)))
    topics = {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    if not all(context.session.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic) for topic in topics):
        raise KafkaError(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "The group has described topic(s) that the client is not authorized to describe.",
        )
    return group


def _failed(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
