"""OffsetForLeaderEpoch (key 23): where a leader epoch ended, for truncation (KIP-101, KIP-279, KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(
    broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    session = context.session
    response, turn = OffsetForLeaderEpochResponse(), Turn(broker.clock)
    for topic in request.topics:
        allowed = session.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER) or session.allows(
            Operation.DESCRIBE, ResourceType.TOPIC, topic.topic
        )
        told = OffsetForLeaderTopicResult(topic=topic.topic)
        for asked in topic.partitions:
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                found = broker.replicas.partition(topic.topic, asked.partition).end_of_epoch(
                    asked.leader_epoch,
                    current_leader_epoch=asked.current_leader_epoch,
                )
            except KafkaError as error:
                told.partitions.append(EpochEndOffset(error_code=error.code, partition=asked.partition))
            else:
                told.partitions.append(
                    EpochEndOffset(partition=asked.partition, leader_epoch=found.epoch, end_offset=found.end_offset)
                )
            await turn.share()
        response.topics.append(told)
    return response


def failed(request: OffsetForLeaderEpochRequest, error: KafkaError) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    EpochEndOffset(error_code=error.code, partition=asked.partition) for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
