"""OffsetCommit (key 8) and TxnOffsetCommit (key 28): a group says where it goes on reading, at once or at a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.caller import Caller
from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.groups.classic.rebalancing import begin_session
from kwire.coordinator.groups.offsets.offsets import CommittedOffset
from kwire.coordinator.groups.offsets.records import offset_record
from kwire.coordinator.runtime.outcome import Now, Outcome, Producer
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kwire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kwire.storage.verification import VerificationGuard

if TYPE_CHECKING:
    from kwire.coordinator.groups.group import CommitCheck, Group
    from kwire.coordinator.groups.machine import GroupMachine

_NO_GROUP_FROM = 9
"""From this version on a missing group is GROUP_ID_NOT_FOUND, before it was ILLEGAL_GENERATION."""

_KEEPS_SESSION = (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE)


def commit(
    machine: GroupMachine, caller: Caller, request: OffsetCommitRequest, now: Now
) -> Outcome[OffsetCommitResponse]:
    """Stores the offsets; topics have both name and id, as far as known. A commit keeps its member's session alive.

    A group that does not exist and a generation below 0 make a group without members. Raises what
    `Group.check_commit` raises, GROUP_ID_NOT_FOUND, ILLEGAL_GENERATION.
    """
    group = machine.groups.get(request.group_id)
    generation = request.generation_id_or_member_epoch
    check: CommitCheck | None = None
    if group is not None:
        check = group.check_commit(
            request.member_id,
            request.group_instance_id,
            generation,
            transactional=False,
            api_version=caller.api_version,
        )
        if isinstance(group, ClassicGroup) and group.state in _KEEPS_SESSION and request.member_id in group.members:
            begin_session(machine, group, group.members[request.member_id], now)
    elif generation >= 0:
        if caller.api_version >= _NO_GROUP_FROM:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    retention_ms = request.retention_time_ms
    expires_ms = None if retention_ms == -1 else now.wall_ms + retention_ms
    longest = machine.config()["offset.metadata.max.bytes"]
    topics, records = [], []
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            code = _check_metadata(partition, longest)
            answers.append(OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code))
            if not code:
                if check is not None:
                    check(topic.name, topic.topic_id, partition.partition_index)
                offset = _offset(partition, now, expires_ms, topic.topic_id)
                records.append(offset_record(request.group_id, (topic.name, partition.partition_index), offset))
        topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    return Outcome(OffsetCommitResponse(topics=topics), records)


def commit_in_transaction(
    machine: GroupMachine,
    caller: Caller,
    request: TxnOffsetCommitRequest,
    now: Now,
    verification: VerificationGuard | None = None,
) -> Outcome[TxnOffsetCommitResponse]:
    """Stores the offsets, which count when the producer's transaction is committed.

    `verification`: that the transaction's coordinator knows of it, where this is the first of the transaction.

    Raises what `Group.check_commit` raises, a stale member epoch as ILLEGAL_GENERATION.
    """
    group = machine.groups.get(request.group_id)
    if group is not None:
        try:
            _check_transactional(machine, group, caller, request)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION) from None
            raise
    elif request.generation_id >= 0:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    longest = machine.config()["offset.metadata.max.bytes"]
    topics, records = [], []
    for topic in request.topics:
        answers = []
        for partition in topic.partitions:
            code = _check_metadata(partition, longest)
            answers.append(TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code))
            if not code:
                offset = _offset(partition, now, None, uuids.ZERO)
                records.append(offset_record(request.group_id, (topic.name, partition.partition_index), offset))
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
    producer = Producer(request.producer_id, request.producer_epoch)
    return Outcome(TxnOffsetCommitResponse(topics=topics), records, producer=producer, verification=verification)


def _check_transactional(machine: GroupMachine, group: Group, caller: Caller, request: TxnOffsetCommitRequest) -> None:
    check = group.check_commit(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        transactional=True,
        api_version=caller.api_version,
    )
    if check is None:
        return
    longest = machine.config()["offset.metadata.max.bytes"]
    for topic in request.topics:
        known = machine.image().topic(topic.name)
        if known is None:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        for partition in topic.partitions:
            if not _check_metadata(partition, longest):
                check(topic.name, known.id, partition.partition_index)


def _check_metadata(
    partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition, longest: int
) -> ErrorCode:
    metadata = partition.committed_metadata or ""
    too_large = len(metadata) + sum(char > "\uffff" for char in metadata) > longest  # in Java's characters
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if too_large else ErrorCode.NONE


def _offset(
    partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    now: Now,
    expires_ms: int | None,
    topic_id: bytes,
) -> CommittedOffset:
    return CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now.wall_ms,
        expires_ms,
        topic_id,
    )
