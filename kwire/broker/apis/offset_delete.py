"""OffsetDelete (key 47): a group forgets where it was in some topics (KIP-496)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.offset_partitions import merged, sort_out
from kwire.coordinator.groups.offsets.delete import delete_offsets
from kwire.coordinator.groups.requests import check_group_id
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(broker: Broker, context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not context.session.allows(Operation.DELETE, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    check_group_id(request.group_id)
    request.topics, others = sort_out(broker, context.session, request.topics)
    response = await broker.coordinators.write(request.group_id, lambda machine, now: delete_offsets(machine, request))
    response.topics = merged([_refused(topic, code) for topic, code in others], response.topics)
    return response


def failed(request: OffsetDeleteRequest, error: KafkaError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)


def _refused(topic: OffsetDeleteRequestTopic, code: ErrorCode) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )
