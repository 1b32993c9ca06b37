"""Fetch (key 1): record batches from partitions, for consumers and for followers.

v7 brought fetch sessions (KIP-227), v9 epochs for fencing (KIP-320), v12 the diverging epoch (KIP-595), v13 topic ids,
v15 the follower's broker epoch (KIP-903), v16 the new leader's address with the error (KIP-951).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from kwire.broker import fetch_templates
from kwire.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, CachedPartition, FetchSession, PartitionKey
from kwire.broker.fetch_without_session import BOUNDS, BY_TOPIC_ID
from kwire.broker.fetching import FetchWait, Reader, Target
from kwire.broker.leader_hints import LeaderHints
from kwire.broker.parked import Parked
from kwire.broker.sendable import sendable
from kwire.cluster.replica import Bound
from kwire.protocol import uuids
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
    SnapshotId,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.cluster.partition import Partition
    from kwire.cluster.replica import PartitionRead

_ORDER: Final = attrgetter("order")
_HINTS: Final = 16

_NOT_DIVERGING, _NO_LEADER_TOLD, _NO_SNAPSHOT = EpochEndOffset(), LeaderIdAndEpoch(), SnapshotId()
"""In all answers that have nothing else to say. Never changed."""

_BEFORE_READING: Final = (
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
"""Errors with which the list of aborted transactions is empty, unless they came of reading: then it is null."""

templates = fetch_templates
"""For requests without a session that come again with other offsets."""


async def handle(
    broker: Broker, context: RequestContext, request: FetchRequest, found: Mapping[int, Partition] | None = None
) -> FetchResponse | ParkedFetch:
    """`found`: the partitions of the one topic that is asked for, where who may read it has waited for them already."""
    bound = BOUNDS.get(request.isolation_level)
    if bound is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown isolation level {request.isolation_level}")
    try:
        fetch = _Fetch(broker, context, request, bound, found)
    except KafkaError as error:
        # The session is not what the client takes it for, so that nothing can be said of its partitions.
        return FetchResponse(error_code=error.code)
    try:
        size, urgent = await fetch.reader.read_all(fetch.targets.values(), record=True)
        min_bytes = min(request.min_bytes, fetch.reader.max_bytes)
        if (
            urgent
            or request.max_wait_ms <= 0
            or size >= min_bytes
            or not fetch.session.partitions
            or (size and any(map(fetch.reader.falls_short, fetch.targets.values())))
        ):
            return await fetch.response(just_read=not urgent)
    except BaseException:
        fetch.end()
        raise
    return ParkedFetch(fetch, fetch.wait(size, min_bytes, request.max_wait_ms))


def failed(request: FetchRequest, error: KafkaError) -> FetchResponse:
    """The error stands at the top, from v7 on, and with each partition where topics have names, before v13."""
    response = FetchResponse(error_code=error.code)
    for topic in request.topics:
        if topic.topic_id != uuids.ZERO:
            continue
        partitions = [_error_data(asked.partition, error) for asked in topic.partitions]
        response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=partitions)
        )
    return response


class ParkedFetch(Parked):
    """A fetch that waits for records."""

    at_once = True

    def __init__(self, fetch: _Fetch, wait: FetchWait) -> None:
        self._fetch = fetch
        self._wait = wait

    def hurry(self) -> None:
        self._wait.hurry()

    def abandon(self) -> None:
        self._fetch.end()

    async def response(self) -> FetchResponse:
        try:
            self._fetch.watch()
            await self._wait.until_enough()
            return await self._fetch.response()
        except BaseException:
            self._fetch.end()
            raise


class _Fetch:
    """One fetch request: its session, its targets, and the making of its response."""

    def __init__(
        self,
        broker: Broker,
        context: RequestContext,
        request: FetchRequest,
        bound: Bound,
        found: Mapping[int, Partition] | None,
    ) -> None:
        """Raises KafkaError where there is no such session."""
        version = context.api_version
        self._found = found
        self._broker = broker
        self._context = context
        self._by_id = version >= BY_TOPIC_ID
        follower = request.replica_state if version >= 15 else request
        replica_id = follower.replica_id
        replica_epoch = request.replica_state.replica_epoch
        self._from_follower = replica_id >= 0
        self.session, self._kept, self._incremental = self._open_session(request)
        max_bytes = request.max_bytes
        if not self._from_follower:
            max_bytes = min(max_bytes, broker.config["fetch.max.bytes"])
        self.reader = Reader(
            broker.clock,
            max_bytes,
            bound=bound,
            replica_id=replica_id,
            replica_epoch=replica_epoch,
            tiering=broker.tiering,
        )
        # How far a follower is, it says of each partition with each fetch, by saying nothing else.
        session = self.session
        everything = self._from_follower or session.fetching is not None or session.bound != bound
        if session.fetching is not None:
            session.fetching.give_way()
        session.fetching, session.bound = self, bound
        self._told = False
        self._gave_way = False
        self._wait: FetchWait | None = None
        self._hints: LeaderHints | None = None
        self.targets = {asked: self._target(asked) for asked in session.take_due(everything=everything)}

    def _open_session(self, request: FetchRequest) -> tuple[FetchSession, bool, bool]:
        """(session, whether it is kept, whether the answer is incremental)."""
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
            if request.session_epoch == INITIAL_EPOCH:
                session = sessions.open(privileged=self._from_follower, by_topic_id=by_id, size=len(asked), now_ms=now)
            kept = session is not None
            if session is None:
                session = FetchSession(0, privileged=False, by_topic_id=by_id, now_ms=now)
            session.update(asked)
            return session, kept, False
        session = sessions.resume(request.session_id, request.session_epoch, by_topic_id=by_id, now_ms=now)
        forgotten: list[PartitionKey] = []
        for dropped in request.forgotten_topics_data:
            name = dropped.topic_id if by_id else dropped.topic
            forgotten += [(name, index) for index in dropped.partitions]
        session.update(asked, forgotten)
        if not session.partitions:
            sessions.close(session.id)
            return session, False, False
        return session, True, True

    def wait(self, found: int, min_bytes: int, max_wait_ms: int) -> FetchWait:
        self._wait = FetchWait(
            self.session,
            self.reader,
            self.targets,
            self._target,
            self._broker.alarms,
            found=found,
            min_bytes=min_bytes,
            deadline=self._broker.clock.monotonic() + max_wait_ms / 1000,
        )
        if self._gave_way:
            self._wait.hurry()
        return self._wait

    def give_way(self) -> None:
        """Another fetch of the session came: this one answers with what it has, and nothing of it counts as told."""
        self._gave_way = True
        if self._wait is not None:
            self._wait.hurry()

    def watch(self) -> None:
        """Has a session that is not kept watch its partitions too. Those that changed before are looked at again, so
        are those of which the first look, under `max_bytes`, did not bring all."""
        for asked, target in self.targets.items():
            partition, read = target.partition, target.read
            if partition is None:
                continue
            quiet = self.reader.is_quiet(target)
            if quiet and self._kept:
                continue
            self.session.watch(asked, partition)
            if not quiet or read is None or not partition.is_as_read(read):
                self.session.make_due(asked)

    def end(self) -> None:
        """The session is free for the next fetch."""
        session = self.session
        self._wait = None
        if not self._told:
            for asked in self.targets:
                session.make_due(asked)
        session.closed |= not self._kept
        session.end_fetch(self)

    def _target(self, asked: CachedPartition) -> Target:
        broker, session = self._broker, self._context.session
        if self._found is not None:
            partition = self._found[asked.index]
            return Target(asked, partition.topic, partition, None)
        name = asked.name
        if name is None:
            name = asked.topic if isinstance(asked.topic, str) else broker.store.image.topic_names.get(asked.topic)
            if name is None:
                return Target(asked, "", None, KafkaError(ErrorCode.UNKNOWN_TOPIC_ID))
            asked.name = name
        if self._from_follower:
            allowed = session.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
        else:
            allowed = session.allows(Operation.READ, ResourceType.TOPIC, name)
        if not allowed:
            return Target(asked, name, None, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        try:
            partition = broker.replicas.partition(name, asked.index)
            if self._by_id and partition.topic_id != asked.topic:
                raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        except KafkaError as error:
            # With its traceback it would have the frame that has the fetch: a cycle.
            return Target(asked, name, None, error.with_traceback(None))
        if self._kept:
            self.session.watch(asked, partition)  # before it is read
        return Target(asked, name, partition, None)

    async def response(self, *, just_read: bool = False) -> FetchResponse:
        """What the targets' latest reads amount to. The session is free then.

        `just_read`: see `sendable`; not so where records were waited for, or for what is in remote storage.
        """
        session = self.session
        response = FetchResponse(session_id=session.id if self._kept else 0)
        served = []
        topic_response = None
        turn = self.reader.turn(len(self.targets))
        for asked in sorted(self.targets, key=_ORDER):
            target = self.targets[asked]
            data = self._failure(target) if target.read is None else await self._data(target, target.read, just_read)
            if turn is not None:
                await turn.share()
            if self._gave_way:
                session.make_due(asked)
            elif self._kept:
                news = asked.has_news(
                    has_records=target.size > 0,
                    high_watermark=data.high_watermark,
                    log_start_offset=data.log_start_offset,
                    special=target.urgent,
                )
                if target.size:
                    served.append(asked)
                if not self.reader.is_quiet(target):
                    session.make_due(asked)
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
        if self._incremental:
            session.serve_last(served)
        self._told = not self._gave_way
        self.end()
        if self._hints is not None and not self._from_follower:
            response.node_endpoints = [
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in self._hints.endpoints
            ]
        return response

    def _failure(self, target: Target) -> PartitionData:
        error = target.error or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        data = _error_data(target.asked.index, error)
        if target.partition is not None or error.code not in _BEFORE_READING:
            data.aborted_transactions = None
        context = self._context
        if self._hints is None:
            self._hints = LeaderHints(self._broker, context.session, wanted=context.api_version >= _HINTS)
        hint = self._hints.after(error, target.topic, target.asked.index)
        if hint is not None:
            data.current_leader = LeaderIdAndEpoch(leader_id=hint[0], leader_epoch=hint[1])
        return data

    async def _data(self, target: Target, read: PartitionRead, just_read: bool) -> PartitionData:
        data = PartitionData(
            partition_index=target.asked.index,
            error_code=ErrorCode.NONE if target.error is None else target.error.code,
            diverging_epoch=_NOT_DIVERGING,
            current_leader=_NO_LEADER_TOLD,
            snapshot_id=_NO_SNAPSHOT,
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
            try:
                data.records = await sendable(self._broker.executor, read.slice, just_read=just_read)
            except OSError as error:
                if read.log_dir is None:
                    raise
                target.take(None, read.log_dir.fail(f"read of {target.topic}-{target.asked.index} failed", error))
                return self._failure(target)
        return data


def _error_data(index: int, error: KafkaError) -> PartitionData:
    return PartitionData(partition_index=index, error_code=error.code, high_watermark=-1, records=b"")
