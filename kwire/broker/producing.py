"""Appending what a Produce request brings to its partitions, and waiting until the ISR has it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Union

import trio

from kwire.broker.leader_hints import LeaderHints
from kwire.broker.parked import Parked
from kwire.broker.produce_outcomes import refused, refused_silently, taken
from kwire.broker.side_by_side import side_by_side
from kwire.broker.transaction_verification import Verified, verify_batches
from kwire.cluster.partition import ALL
from kwire.cluster.waiting import ReplicationWait
from kwire.config.definition import MAX_LONG
from kwire.metadata.names import INTERNAL_TOPICS
from kwire.ports.at_once import needs_task
from kwire.ports.turns import Turn
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kwire.protocol.records.header import BatchHeader, said_to_be_transactional
from kwire.protocol.types import TopicPartition
from kwire.security.authorizer import Operation, ResourceType
from kwire.storage.record_walk import PendingWalk
from kwire.storage.validation import check, first_batch

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.cluster.partition import Appended, Partition
    from kwire.storage.log import Log

BY_TOPIC_ID = 13
_HINTS = 10
ACKS = (0, 1, ALL)
_ADMIN = "__admin_client"
"""The client id by which Apache Kafka lets somebody write into the coordinators' topics."""

_NOTHING_TO_VERIFY = Verified({}, {})


async def produce(
    broker: Broker, context: RequestContext, request: ProduceRequest, done: Sequence[PartitionProduceResponse] = ()
) -> ProduceResponse | ParkedProduce | None:
    """Handles the request. `done`: what became of other partitions of its one topic, to be told as well.

    Raises KafkaError TRANSACTIONAL_ID_AUTHORIZATION_FAILED; RequestRefused where acks are 0 and a batch was refused.
    """
    session, acks = context.session, request.acks
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        topics = _once(topics)
    verified = _NOTHING_TO_VERIFY
    if _any_transactional(topics):
        transactional_id = request.transactional_id
        if transactional_id is None or not session.allows(
            Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        batches = _transactional(broker, context, topics)
        if batches:
            verified = await verify_batches(broker, context.api_version, transactional_id, batches)
    hints: LeaderHints | None = None
    response = ProduceResponse()
    appends: list[tuple[Partition, Appended]] = []
    owed: list[PartitionProduceResponse] = []
    any_refused = any(partition.error_code for partition in done)
    by_id = context.api_version >= BY_TOPIC_ID

    attempts: list[_Attempt] = []
    told_of: list[TopicProduceResponse] = []
    for topic in topics:
        told = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[*done])
        response.responses.append(told)
        name: str | None = broker.store.image.topic_names.get(topic.topic_id) if by_id else topic.name
        allowed = name is None or session.allows(Operation.WRITE, ResourceType.TOPIC, name)
        for data in topic.partition_data:
            attempts.append((name, topic.topic_id if by_id else None, allowed, data))
            told_of.append(told)
    outcomes = None
    if len(attempts) > 1 and _any_flushed(broker, attempts):
        await needs_task()
        outcomes = await side_by_side([partial(_append, broker, context, acks, verified, each) for each in attempts])
    turn = Turn(broker.clock) if len(attempts) > 1 else None
    for number, attempt in enumerate(attempts):
        if turn is not None and number:
            await turn.share()
        outcome = await _append(broker, context, acks, verified, attempt) if outcomes is None else outcomes[number]
        index = attempt[-1].index
        if isinstance(outcome, _Refused):
            any_refused = True
            partition = refused(index, outcome.error, outcome.log_start_offset)
            hints = hints or LeaderHints(broker, session, wanted=context.api_version >= _HINTS)
            hint = hints.after(outcome.error, attempt[0] or "", index)
            if hint is not None:
                partition.current_leader = LeaderIdAndEpoch(leader_id=hint[0], leader_epoch=hint[1])
        else:
            info = outcome[1].info
            partition = taken(index, info.first_offset, info.log_append_time, info.log_start_offset)
            if acks == ALL and outcome[0].acknowledged(outcome[1]) is not ErrorCode.NONE:
                appends.append(outcome)
                owed.append(partition)
        told_of[number].partition_responses.append(partition)
    if hints is not None:
        response.node_endpoints = [
            NodeEndpoint(node_id=node, host=host, port=port, rack=rack) for node, host, port, rack in hints.endpoints
        ]
    if acks == 0:
        if any_refused:
            raise refused_silently()
        return None
    if appends:
        wait = ReplicationWait(appends)
        if not wait.settled:
            return ParkedProduce(response, owed, wait, request.timeout_ms)
        _settle(owed, [outcome or ErrorCode.NONE for outcome in wait.outcomes])
    return response


def _any_flushed(broker: Broker, attempts: list[_Attempt]) -> bool:
    """Whether an append to one of the partitions may wait for the disk (flush.messages)."""
    partitions = broker.replicas.partitions
    for name, *_, data in attempts:
        partition = partitions.get((name or "", data.index))
        if partition is not None and partition.log is not None and partition.log.config.flush_messages < MAX_LONG:
            return True
    return False


class _Refused(NamedTuple):
    """The batch was not appended."""

    error: KafkaError
    log_start_offset: int
    """-1 where there is no log."""


_Attempt = tuple[str | None, bytes | None, bool, PartitionProduceData]
"""The name of a topic (None: there is no such one), its id if it is asked for by that, whether the client may write to
it, and what it wants to write."""

_Outcome = Union["tuple[Partition, Appended]", _Refused]


def _once(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Each partition once, with what the request says of it last; no topic without partitions, as Kafka has it."""
    merged: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        if topic.partition_data:
            partitions = merged.setdefault((topic.name, topic.topic_id), {})
            for data in topic.partition_data:
                partitions[data.index] = data
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(partitions.values()))
        for (name, topic_id), partitions in merged.items()
    ]


def _any_transactional(topics: list[TopicProduceData]) -> bool:
    for topic in topics:
        for data in topic.partition_data:
            records = data.records
            if records is not None and said_to_be_transactional(records):
                return True
    return False


def _transactional(
    broker: Broker, context: RequestContext, topics: list[TopicProduceData]
) -> dict[TopicPartition, BatchHeader]:
    """The batches that belong to a transaction, of partitions that are led here and that the client may write to."""
    batches = {}
    for topic in topics:
        name = topic.name
        if context.api_version >= BY_TOPIC_ID:
            name = broker.store.image.topic_names.get(topic.topic_id, "")
        if not context.session.allows(Operation.WRITE, ResourceType.TOPIC, name):
            continue
        for data in topic.partition_data:
            found = broker.replicas.partitions.get((name, data.index))
            if found is not None and found.leadership is not None:
                try:
                    header, _ = first_batch(data.records, context.api_version)
                except KafkaError:
                    continue  # told when its turn comes
                if header.transactional and header.producer_id >= 0:
                    batches[name, data.index] = header
    return batches


async def _append(
    broker: Broker, context: RequestContext, acks: int, verified: Verified, attempt: _Attempt
) -> _Outcome:
    name, topic_id, allowed, data = attempt
    partition = None
    try:
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not allowed:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if verified.refused and (name, data.index) in verified.refused:
            raise verified.refused[name, data.index]
        found = broker.replicas.partition(name, data.index)
        if topic_id is not None and found.topic_id != topic_id:  # made anew amid the request
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        header, batch = first_batch(data.records, context.api_version)
        if name in INTERNAL_TOPICS and context.client_id != _ADMIN:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
        if acks not in ACKS:
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        partition = found  # from here on a refusal tells where the log starts
        guard = verified.guards.get((name, data.index)) if verified.guards else None
        log: Log | None = partition.check_appendable(acks)
        assert log is not None
        checked = check(header, batch, log.config, broker.clock.wall_ms(), name=log.name)
        if isinstance(checked, PendingWalk):
            if checked.large:
                checked = await broker.executor.run(checked.run)
                log = None  # what was checked may not hold any more
            else:
                checked = checked.run()
        return partition, await partition.append(checked, acks, verification=guard, log=log)
    except KafkaError as error:
        log = None if partition is None else partition.log
        return _Refused(error, -1 if log is None else log.log_start_offset)


def _settle(owed: list[PartitionProduceResponse], outcomes: list[ErrorCode]) -> None:
    """Turns what became of the appends into the answers for their partitions."""
    for partition, outcome in zip(owed, outcomes, strict=True):
        if outcome is not ErrorCode.NONE:
            partition.error_code = outcome
            partition.base_offset = partition.log_append_time_ms = partition.log_start_offset = -1


class ParkedProduce(Parked):
    """A produce with acks=all whose batches are appended here, waiting for the rest of the ISR."""

    pipelined = True

    def __init__(
        self,
        response: ProduceResponse,
        owed: list[PartitionProduceResponse],
        wait: ReplicationWait,
        timeout_ms: int,
    ) -> None:
        self._response = response
        self._owed = owed
        self._wait = wait
        self._deadline = trio.current_time() + timeout_ms / 1000

    def let_go_of_data(self, request: ProduceRequest) -> None:
        for topic in request.topic_data:
            for data in topic.partition_data:
                data.records = None  # they are in the logs

    def hurry(self) -> None:
        """What is not replicated now counts as timed out."""
        self._wait.give_up()

    async def response(self) -> ProduceResponse:
        _settle(self._owed, await self._wait.finish(max(self._deadline - trio.current_time(), 0)))
        return self._response
