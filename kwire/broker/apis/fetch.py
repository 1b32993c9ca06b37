"""Fetch (key 1): record batches from partitions, for consumers and for followers.

v7 brought fetch sessions (KIP-227), v9 epochs for fencing (KIP-320), v12 the diverging epoch (KIP-595), v13 topic ids,
v15 the follower's broker epoch (KIP-903), v16 the new leader's address with the error (KIP-951).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, CachedPartition, FetchSession, PartitionKey
from kwire.broker.fetching import FetchWait, Reader, Target
from kwire.broker.leader_hints import LeaderHints
from kwire.broker.parked import Parked
from kwire.cluster.replica import Bound
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext

_BY_TOPIC_ID = 13
_HINTS = 16
_READ_COMMITTED = 1


async def handle(broker: Broker, context: RequestContext, request: FetchRequest) -> FetchResponse | ParkedFetch:
    fetch = _Fetch(broker, context, request)
    found = await fetch.reader.read_all(fetch.targets, record=True)
    if (
        request.max_wait_ms <= 0
        or found >= request.min_bytes
        or not fetch.targets
        or any(target.urgent for target in fetch.targets)
    ):
        return await fetch.response()
    return ParkedFetch(fetch, FetchWait(fetch.reader, fetch.targets, request.min_bytes, request.max_wait_ms))


def failed(request: FetchRequest, error: KafkaError) -> FetchResponse:
    """Errors of the session stand at the top, where the client looks for them; all others too, from v7 on."""
    response = FetchResponse(error_code=error.code)
    for topic in request.topics:
        partitions = [_error_data(asked.partition, error) for asked in topic.partitions]
        response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)
        )
    return response


class ParkedFetch(Parked):
    """A fetch that waits for records."""

    def __init__(self, fetch: _Fetch, wait: FetchWait) -> None:
        self._fetch = fetch
        self._wait = wait

    def hurry(self) -> None:
        self._wait.hurry()

    async def response(self) -> FetchResponse:
        await self._wait.until_enough()
        await self._fetch.reader.read_all(self._fetch.targets, record=False)
        return await self._fetch.response()


class _Fetch:
    """One fetch request: its session, its targets, and the making of its response."""

    def __init__(self, broker: Broker, context: RequestContext, request: FetchRequest) -> None:
        version = context.api_version
        self._broker = broker
        self._context = context
        self._by_id = version >= _BY_TOPIC_ID
        follower = request.replica_state if version >= 15 else request
        replica_id = follower.replica_id
        replica_epoch = request.replica_state.replica_epoch
        self._from_follower = replica_id >= 0
        if self._from_follower and not context.session.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        self._session, self._incremental, partitions = self._open_session(request)
        max_bytes = request.max_bytes
        if not self._from_follower:
            max_bytes = min(max_bytes, broker.config["fetch.max.bytes"])
        self.reader = Reader(
            max_bytes,
            bound=Bound.LAST_STABLE_OFFSET if request.isolation_level == _READ_COMMITTED else Bound.HIGH_WATERMARK,
            replica_id=replica_id,
            replica_epoch=replica_epoch,
        )
        self.targets = [self._target(asked) for asked in partitions.values()]

    def _open_session(
        self, request: FetchRequest
    ) -> tuple[FetchSession | None, bool, dict[PartitionKey, CachedPartition]]:
        """(session or None, whether the answer is incremental, the partitions to read)."""
        sessions, now = self._broker.fetch_sessions, self._broker.clock.wall_ms()
        by_id = self._by_id
        asked: list[tuple[PartitionKey, FetchPartition]] = []
        for topic in request.topics:
            name: str | bytes = topic.topic_id if by_id else topic.topic
            for partition in topic.partitions:
                asked.append(((name, partition.partition), partition))
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            sessions.close(request.session_id)
            session = None
            if request.session_epoch == INITIAL_EPOCH and asked:
                session = sessions.open(privileged=self._from_follower, by_topic_id=by_id, size=len(asked), now_ms=now)
            if session is None:
                session_less = FetchSession(0, privileged=False, by_topic_id=by_id, now_ms=now)
                session_less.update(asked)
                return None, False, session_less.partitions
            session.update(asked)
            return session, False, session.partitions
        session = sessions.resume(request.session_id, request.session_epoch, by_topic_id=by_id, now_ms=now)
        forgotten = [
            (topic.topic_id if by_id else topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        session.update(asked, forgotten)
        return session, True, session.partitions

    def _target(self, asked: CachedPartition) -> Target:
        broker = self._broker
        name = asked.topic if isinstance(asked.topic, str) else broker.store.image.topic_names.get(asked.topic)
        if name is None:
            return Target(asked, "", None, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID))
        if not self._from_follower and not self._context.session.allows(Operation.READ, ResourceType.TOPIC, name):
            return Target(asked, name, None, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        try:
            partition = broker.replicas.partition(name, asked.index)
        except KafkaError as error:
            return Target(asked, name, None, error)
        return Target(asked, name, partition, None)

    async def response(self) -> FetchResponse:
        """What the targets' latest reads amount to."""
        session = self._session
        response = FetchResponse(session_id=session.id if session is not None else 0)
        hints = LeaderHints(self._broker, self._context.session, wanted=self._context.api_version >= _HINTS)
        served = []
        topic_response = None
        for target in self.targets:
            asked = target.asked
            data = await self._data(target, hints)
            if session is not None:
                news = asked.has_news(
                    has_records=target.size > 0,
                    high_watermark=data.high_watermark,
                    log_start_offset=data.log_start_offset,
                    special=target.urgent,
                )
                if target.error is not None:
                    asked.forget_sent()
                if target.size:
                    served.append((asked.topic, asked.index))
                if self._incremental and not news:
                    continue
            if topic_response is None or asked.topic != (
                topic_response.topic_id if self._by_id else topic_response.topic
            ):
                if isinstance(asked.topic, str):
                    topic_response = FetchableTopicResponse(topic=asked.topic)
                else:
                    topic_response = FetchableTopicResponse(topic_id=asked.topic)
                response.responses.append(topic_response)
            topic_response.partitions.append(data)
        if session is not None:
            session.serve_last(served)
        response.node_endpoints = [
            NodeEndpoint(node_id=node, host=host, port=port, rack=rack) for node, host, port, rack in hints.endpoints
        ]
        return response

    async def _data(self, target: Target, hints: LeaderHints) -> PartitionData:
        read = target.read
        if read is None:
            error = target.error or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            data = _error_data(target.asked.index, error)
            hint = hints.after(error, target.topic, target.asked.index)
            if hint is not None:
                data.current_leader = LeaderIdAndEpoch(leader_id=hint[0], leader_epoch=hint[1])
            return data
        data = PartitionData(
            partition_index=target.asked.index,
            high_watermark=read.high_watermark,
            last_stable_offset=read.last_stable_offset,
            log_start_offset=read.log_start_offset,
            records=b"",
            aborted_transactions=None,
        )
        if read.diverging is not None:
            data.diverging_epoch = EpochEndOffset(epoch=read.diverging.epoch, end_offset=read.diverging.end_offset)
        if read.aborted is not None:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in read.aborted
            ]
        if read.slice is not None:
            data.records = await self._broker.warm(read.slice)
        return data


def _error_data(index: int, error: KafkaError) -> PartitionData:
    return PartitionData(partition_index=index, error_code=error.code, high_watermark=-1, records=b"")
