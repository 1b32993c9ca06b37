"""DescribeLogDirs (key 35): the log dirs with their sizes, and the partitions in them (KIP-113).

A log that is moved is told twice: where it is, and where it goes to, with how many offsets that lags behind.
v3 brought an error for the whole answer, v4 the size of the volume (KIP-827), v5 cordoned dirs (never so here).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.storage.log import Log
    from kwire.storage.log_dir import LogDir
    from kwire.storage.moving.future import FutureLog


async def handle(broker: Broker, context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not context.session.allows(Operation.DESCRIBE, ResourceType.CLUSTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    logs = broker.logs
    # All at one moment: a log that is moved meanwhile must not be told twice, or not at all.
    found = [(log_dir, logs.logs_in(log_dir), logs.moves.futures_in(log_dir)) for log_dir in logs.dirs]
    return DescribeLogDirsResponse(results=[await _describe(broker, *there, wanted) for there in found])


def failed(request: DescribeLogDirsRequest, error: KafkaError) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error.code)


async def _describe(
    broker: Broker,
    log_dir: LogDir,
    logs: Sequence[Log],
    futures: Sequence[FutureLog],
    wanted: set[tuple[str, int]] | None,
) -> DescribeLogDirsResult:
    path = broker.ports.files.absolute(log_dir.path)
    if not log_dir.online:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
    try:
        total, usable = await broker.executor.run(broker.ports.files.space, log_dir.path)
    except OSError:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    turn = Turn(broker.clock)
    for log in logs:
        if wanted is None or log.key in wanted:
            lag = max(log.high_watermark - log.log_end_offset, 0)
            topics[log.topic].append(
                DescribeLogDirsPartition(partition_index=log.partition, partition_size=log.size, offset_lag=lag)
            )
        await turn.share()
    for future in futures:
        if wanted is None or future.key in wanted:
            lag = -1 if future.source_gone else future.source.log_end_offset - future.end_offset
            topics[future.key[0]].append(
                DescribeLogDirsPartition(
                    partition_index=future.key[1], partition_size=future.size, offset_lag=lag, is_future_key=True
                )
            )
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[DescribeLogDirsTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
        total_bytes=total,
        usable_bytes=usable,
    )
