"""OffsetDelete (key 47): a group forgets where it was in some topics (KIP-496)."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    image = broker.store.image
    valid, refused = [], []
    for topic in request.topics:
        found = image.topics.get(topic.name)
        if not context.session.allows(Operation.READ, ResourceType.TOPIC, topic.name):
            refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        count = 0 if found is None else len(found.partitions)
        known = [partition for partition in topic.partitions if 0 <= partition.partition_index < count]
        unknown = [partition for partition in topic.partitions if not 0 <= partition.partition_index < count]
        if unknown:
            stranger = OffsetDeleteRequestTopic(name=topic.name, partitions=unknown)
            refused.append(_refused(stranger, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if known:
            valid.append(OffsetDeleteRequestTopic(name=topic.name, partitions=known))
    if refused and not valid:
        return OffsetDeleteResponse(topics=refused)
    check_group_id(request.group_id)
    request.topics = valid
    shard = broker.coordinators.groups.shard_of(request.group_id)
    response = await shard.write(lambda machine, now: delete_offsets(machine, request, now))
    response.topics = refused + response.topics
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
