"""DeleteRecords (key 21): moves the start of logs forward (KIP-107).

The answer comes when every live replica has moved its start; with followers that takes their next fetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from kwire.broker.parked import Parked
from kwire.cluster.partition import Partition
from kwire.metadata.names import INTERNAL_TOPICS
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext


async def handle(
    broker: Broker, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | ParkedDelete:
    response = DeleteRecordsResponse()
    open_: list[_Deletion] = []
    turn = Turn(broker.clock)
    for name, offsets in _once(request).items():
        allowed = context.session.allows(Operation.DELETE, ResourceType.TOPIC, name)
        told = DeleteRecordsTopicResult(name=name)
        for index, offset in offsets.items():
            await turn.share()
            result = DeleteRecordsPartitionResult(partition_index=index)
            told.partitions.append(result)
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition = broker.replicas.partition(name, index)
                if name in INTERNAL_TOPICS:
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
                target, low_watermark = await partition.delete_records(offset)
            except KafkaError as error:
                result.low_watermark, result.error_code = -1, error.code
                continue
            result.low_watermark = low_watermark
            if low_watermark < target:
                open_.append(_Deletion(partition, target, result))
        response.topics.append(told)
    return ParkedDelete(response, open_, request.timeout_ms) if open_ else response


def _once(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """The offset for each partition: the last that the request names. No topic without partitions."""
    offsets: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            offsets.setdefault(topic.name, {})[asked.partition_index] = asked.offset
    return offsets


def failed(request: DeleteRecordsRequest, error: KafkaError) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=asked.partition_index, low_watermark=-1, error_code=error.code
                    )
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


class _Deletion:
    """A deletion that is done here and waits for the followers."""

    __slots__ = ("_partition", "_result", "_target")

    def __init__(self, partition: Partition, target: int, result: DeleteRecordsPartitionResult) -> None:
        self._partition = partition
        self._target = target
        self._result = result

    @property
    def partition(self) -> Partition:
        return self._partition

    def done(self) -> bool:
        """Looks again; fills the result in once there is one."""
        try:
            low_watermark = self._partition.low_watermark()
        except KafkaError as error:
            self._result.low_watermark, self._result.error_code = -1, error.code
            return True
        self._result.low_watermark = low_watermark
        return low_watermark >= self._target

    def time_out(self) -> None:
        self._result.low_watermark, self._result.error_code = -1, ErrorCode.REQUEST_TIMED_OUT


class ParkedDelete(Parked):
    """Waits until the low watermarks have come to the offsets asked for, or the request's time is up."""

    def __init__(self, response: DeleteRecordsResponse, deletions: list[_Deletion], timeout_ms: int) -> None:
        self._response = response
        self._open = deletions
        self._timeout = max(timeout_ms, 0) / 1000
        self._done = trio.Event()

    def wake(self, partition: Partition) -> None:
        self._open = [deletion for deletion in self._open if deletion.partition is not partition or not deletion.done()]
        if not self._open:
            self._done.set()

    def hurry(self) -> None:
        self._done.set()

    async def response(self) -> DeleteRecordsResponse:
        watched = {deletion.partition for deletion in self._open}
        for partition in watched:
            partition.watch(self)
            self.wake(partition)
        try:
            with trio.move_on_after(self._timeout):
                await self._done.wait()
        finally:
            for partition in watched:
                partition.unwatch(self)
        for deletion in self._open:
            deletion.time_out()
        return self._response
