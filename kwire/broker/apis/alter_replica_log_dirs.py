"""AlterReplicaLogDirs (key 34): has logs moved to other log dirs of this broker (KIP-113).

The answer comes when a move has begun; DescribeLogDirs tells how far it is. A partition that is not here yet will be
made in the dir that is named. v2 is flexible.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kwire.security.authorizer import Operation, ResourceType
from kwire.storage import layout

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

logger = logging.getLogger(__name__)


async def handle(
    broker: Broker, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    if not context.session.allows(Operation.ALTER, ResourceType.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for (topic, index), path in _wanted(request).items():
        error = ErrorCode.NONE
        try:
            await _alter(broker, topic, index, path)
        except KafkaError as refused:
            logger.warning("%s-%d is not moved to %s: %s", topic, index, path, refused)
            error = refused.code
        told = results.setdefault(topic, AlterReplicaLogDirTopicResult(topic_name=topic))
        told.partitions.append(AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error))
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def failed(request: AlterReplicaLogDirsRequest, error: KafkaError) -> AlterReplicaLogDirsResponse:
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error.code)
                    for index in topic.partitions
                ],
            )
            for log_dir in request.dirs
            for topic in log_dir.topics
        ]
    )


def _wanted(request: AlterReplicaLogDirsRequest) -> dict[tuple[str, int], str]:
    """The path for each partition: the last one, where several are named."""
    return {
        (topic.name, index): log_dir.path
        for log_dir in request.dirs
        for topic in log_dir.topics
        for index in topic.partitions
    }


async def _alter(broker: Broker, topic: str, index: int, path: str) -> None:
    if not layout.can_have_future(topic, index):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
    log_dir = broker.logs.dir_at(path)
    if log_dir is None:
        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")
    log_dir.check_online()
    try:
        partition = broker.replicas.partition(topic, index)
    except KafkaError as error:
        broker.logs.prefer((topic, index), log_dir)
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, error.message) from None
        raise
    if partition.log is None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {partition.name} is offline")
    await broker.logs.moves.move(partition.log, log_dir)
