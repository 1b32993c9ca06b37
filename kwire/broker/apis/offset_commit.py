"""OffsetCommit (key 8): a group stores where it goes on reading. v10 names topics by id (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.coordinators import caller
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
    valid, refused = _sorted_out(broker, context, request)
    if not valid:
        return OffsetCommitResponse(topics=refused)
    who = caller(context)
    request.topics = valid
    shard = broker.coordinators.groups.shard_of(request.group_id)
    try:
        response = await shard.write(lambda machine, now: commit(machine, who, request, now))
    except KafkaError as error:
        response = failed(request, _of_a_commit(error))
    response.topics = refused + response.topics
    return response


def failed(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])


def _of_a_commit(error: KafkaError) -> KafkaError:
    if error.code is ErrorCode.MESSAGE_TOO_LARGE:
        return KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, error.message)
    return error


def _sorted_out(
    broker: Broker, context: RequestContext, request: OffsetCommitRequest
) -> tuple[list[OffsetCommitRequestTopic], list[OffsetCommitResponseTopic]]:
    """What can be committed, named, and the answers for the rest: topics unknown or not to be read by the client."""
    image = broker.store.image
    valid, refused = [], []
    for topic in request.topics:
        if context.api_version >= _BY_ID_FROM:
            topic.name = image.topic_names.get(topic.topic_id, "")
            if not topic.name:
                refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
        found = image.topics.get(topic.name)
        if not context.session.allows(Operation.READ, ResourceType.TOPIC, topic.name):
            refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif found is None:
            refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            count = len(found.partitions)
            known = [partition for partition in topic.partitions if 0 <= partition.partition_index < count]
            unknown = [partition for partition in topic.partitions if not 0 <= partition.partition_index < count]
            if unknown:
                stranger = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=unknown)
                refused.append(_refused(stranger, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            if known:
                valid.append(OffsetCommitRequestTopic(name=topic.name, topic_id=found.id, partitions=known))
    return valid, refused


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )
