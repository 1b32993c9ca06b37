"""OffsetCommit (key 8): a group stores where it goes on reading. v10 names topics by id (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.coordinators import caller
from kwire.broker.offset_partitions import merged, sort_out
from kwire.coordinator.groups.offsets.commit import commit
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_BY_ID_FROM = 10


async def handle(broker: Broker, context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    if not context.session.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    image, topics, refused = broker.store.image, request.topics, []
    if context.api_version >= _BY_ID_FROM:
        for topic in topics:
            topic.name = image.topic_names.get(topic.topic_id, "")
        refused = [_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID) for topic in topics if not topic.name]
        topics = [topic for topic in topics if topic.name]
    for topic in topics:
        if topic.name in image.topics:
            topic.topic_id = image.topics[topic.name].id
    valid, others = sort_out(broker, context.session, topics)
    refused += [_refused(topic, code) for topic, code in others]
    if not valid:
        return OffsetCommitResponse(topics=merged(refused))
    who = caller(context)
    request.topics = valid
    try:
        response = await broker.coordinators.write(
            request.group_id, lambda machine, now: commit(machine, who, request, now)
        )
    except KafkaError as error:
        response = failed(request, error)
    response.topics = merged(refused, response.topics)
    return response


def failed(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )
