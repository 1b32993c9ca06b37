"""OffsetFetch (key 9): where groups go on reading; several groups from v8 (KIP-709), topics by id from v10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.groups.offsets.fetch import fetch, fetch_stable, unknown_offset
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.coordinator.groups.machine import GroupMachine
    from kwire.coordinator.runtime.shard import Shard
    from kwire.metadata.image import MetadataImage

_GROUPS_FROM = 8
_BY_ID_FROM = 10
_TRY_ELSEWHERE = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""Consumers before Apache Kafka 3.9 give up at these, and look for the coordinator again at NOT_COORDINATOR."""
_GROUP_ERROR_FROM = 2
"""Before it, a group's error is said of each partition."""


async def handle(broker: Broker, context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    image, stable = broker.store.image, request.require_stable
    if context.api_version >= _GROUPS_FROM:
        response, turn = OffsetFetchResponse(), Turn(broker.clock)
        for group in request.groups:
            response.groups.append(await _answer(broker, context, image, group, stable))
            await turn.share()
        return response
    asked = _group_of_old(request)
    return _old(asked, await _answer(broker, context, image, asked, stable), context.api_version)


def failed(request: OffsetFetchRequest, error: KafkaError) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=error.code,
        groups=[OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code) for group in request.groups],
    )


async def _answer(
    broker: Broker, context: RequestContext, image: MetadataImage, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    try:
        return await _fetch(broker, context, image, group, require_stable)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)


async def _fetch(
    broker: Broker, context: RequestContext, image: MetadataImage, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    session = context.session
    if not session.allows(Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    by_id = context.api_version >= _BY_ID_FROM
    refused = []
    if group.topics is not None:
        allowed = []
        for topic in group.topics:
            if by_id:
                topic.name = image.topic_names.get(topic.topic_id, "")
            if by_id and not topic.name:
                refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            elif session.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
                allowed.append(topic)
            else:
                refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        group = OffsetFetchRequestGroup(
            group_id=group.group_id, member_id=group.member_id, member_epoch=group.member_epoch, topics=allowed
        )
    shard = broker.coordinators.groups.shard_of(group.group_id)
    if require_stable:
        response = await _when_stored(shard, group)
    else:
        response = shard.read(lambda machine, now: fetch(machine, group))
    if group.topics is None:
        kept = []
        for found in response.topics:
            known = image.topics.get(found.name)
            if by_id and known is None:
                continue  # it has no id any more by which it could be named
            found.topic_id = found.topic_id if known is None else known.id
            if session.allows(Operation.DESCRIBE, ResourceType.TOPIC, found.name):
                kept.append(found)
        response.topics = kept
    response.topics += refused
    return response


async def _when_stored(shard: Shard[GroupMachine], group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    try:
        return await shard.write(lambda machine, now: fetch_stable(machine, group))
    except KafkaError as error:
        if error.code in _TRY_ELSEWHERE:
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from error
        raise


def _refused(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[unknown_offset(index, code) for index in topic.partition_indexes],
    )


def _group_of_old(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The one group of a request before v8."""
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _old(asked: OffsetFetchRequestGroup, group: OffsetFetchResponseGroup, version: int) -> OffsetFetchResponse:
    """The answer as it was before v8."""
    code = group.error_code
    if code and version < _GROUP_ERROR_FROM:
        group = OffsetFetchResponseGroup(topics=[_refused(topic, ErrorCode(code)) for topic in asked.topics or ()])
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=code)
