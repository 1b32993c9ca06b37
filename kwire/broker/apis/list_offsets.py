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
from kwire.ports.turns import Turn
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
_BOUNDS = {0: Bound.HIGH_WATERMARK, 1: Bound.LAST_STABLE_OFFSET}
"""What consumers may see, by isolation level."""
_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


async def handle(broker: Broker, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    bound = Bound.LOG_END
    if request.isolation_level not in _BOUNDS:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown isolation level {request.isolation_level}")
    if request.replica_id == _CONSUMER:
        bound = _BOUNDS[request.isolation_level]
    response, turn = ListOffsetsResponse(), Turn(broker.clock)
    for name, partitions in _once(request).items():
        allowed = context.session.allows(Operation.DESCRIBE, ResourceType.TOPIC, name)
        told = ListOffsetsTopicResponse(name=name)
        for asked in partitions.values():
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                if len(asked) > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
                found = await _list(broker, context, request, name, asked[0], bound)
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_NOT_AVAILABLE and context.api_version < 5:
                    error = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)  # which these versions know
                told.partitions.append(_error(asked[0], error))
            else:
                told.partitions.append(
                    ListOffsetsPartitionResponse(
                        partition_index=asked[0].partition_index,
                        timestamp=found.timestamp,
                        offset=found.offset,
                        leader_epoch=found.leader_epoch if context.api_version >= 4 else -1,
                    )
                )
            await turn.share()
        response.topics.append(told)
    return response


def _once(request: ListOffsetsRequest) -> dict[str, dict[int, list[ListOffsetsPartition]]]:
    """All that is asked of each partition, which should be one thing. No topic without partitions."""
    asked: dict[str, dict[int, list[ListOffsetsPartition]]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            asked.setdefault(topic.name, {}).setdefault(partition.partition_index, []).append(partition)
    return asked


async def _list(
    broker: Broker,
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    asked: ListOffsetsPartition,
    bound: Bound,
) -> ListedOffset:
    if asked.timestamp < 0 and context.api_version < _SINCE.get(asked.timestamp, 0):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if asked.timestamp < EARLIEST_PENDING_UPLOAD:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    partition = broker.replicas.partition(topic, asked.partition_index)
    leader_only = request.replica_id != _DEBUGGER
    is_searched = asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP
    while True:
        log = partition.local_log(asked.current_leader_epoch, leader_only=leader_only)
        here_from = log.local_start_offset
        if broker.tiering is not None and log.tiered and partition.is_leader and log.log_start_offset < here_from:
            within_ms = request.timeout_ms if request.timeout_ms > 0 else None
            found = await broker.tiering.reads.list_offset(partition, asked.timestamp, within_ms)
            if found is not None:
                return ListedOffset(found.timestamp, found.offset, found.leader_epoch)
        listed = await partition.list_offset(
            asked.timestamp, bound, current_leader_epoch=asked.current_leader_epoch, leader_only=leader_only
        )
        # What went from here meanwhile was looked for in neither place.
        if not (is_searched and log.tiered) or log.local_start_offset == here_from:
            return listed


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
