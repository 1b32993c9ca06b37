"""ListOffsets (key 2): offsets by time, and the special ones.

v2 brought the isolation level, v4 leader epochs (KIP-320), v7 the offset of the largest timestamp (KIP-734), v8
earliest local (KIP-405), v9 latest tiered, v10 a time-out for tiered look-ups, v11 earliest pending upload (KIP-1023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.cluster.replica import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    Bound,
    ListedOffset,
)
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_CONSUMER = -1
_DEBUGGER = -2
_READ_COMMITTED = 1
_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


async def handle(broker: Broker, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    asked: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in request.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            (twice if key in asked else asked).add(key)
    response = ListOffsetsResponse()
    for topic in request.topics:
        allowed = context.session.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
        told = ListOffsetsTopicResponse(name=topic.name)
        for partition in topic.partitions:
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if (topic.name, partition.partition_index) in twice:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                found = await _list(broker, context, request, topic.name, partition)
            except KafkaError as error:
                told.partitions.append(_error(partition, error))
            else:
                told.partitions.append(
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index,
                        timestamp=found.timestamp,
                        offset=found.offset,
                        leader_epoch=found.leader_epoch if context.api_version >= 4 else -1,
                    )
                )
        response.topics.append(told)
    return response


async def _list(
    broker: Broker, context: RequestContext, request: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> ListedOffset:
    if asked.timestamp < 0 and context.api_version < _SINCE.get(asked.timestamp, 0):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if asked.timestamp < EARLIEST_PENDING_UPLOAD:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    bound = Bound.LOG_END
    if request.replica_id == _CONSUMER:
        bound = Bound.LAST_STABLE_OFFSET if request.isolation_level == _READ_COMMITTED else Bound.HIGH_WATERMARK
    return await broker.replicas.partition(topic, asked.partition_index).list_offset(
        asked.timestamp,
        bound,
        current_leader_epoch=asked.current_leader_epoch,
        leader_only=request.replica_id != _DEBUGGER,
    )


def failed(request: ListOffsetsRequest, error: KafkaError) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[_error(partition, error) for partition in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _error(asked: ListOffsetsPartition, error: KafkaError) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error.code)
