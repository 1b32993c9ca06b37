"""OffsetCommit (key 8) and TxnOffsetCommit (key 28): a group says where it goes on reading, at once or at a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.coordinator.caller import Caller
from kwire.coordinator.groups.classic.group import ClassicGroup, ClassicState
from kwire.coordinator.groups.classic.rebalancing import begin_session
from kwire.coordinator.groups.offsets.offsets import CommittedOffset
from kwire.coordinator.groups.offsets.records import offset_record
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome, Producer
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

_Partition = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition

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
    storing = _Storing(machine, request.group_id, now, expires_ms)
    topics = [
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=storing.store(topic.name, topic.topic_id, partition, check),
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return Outcome(OffsetCommitResponse(topics=topics), storing.records)


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
    storing = _Storing(machine, request.group_id, now)
    topics = [
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=storing.store(topic.name, uuids.ZERO, partition),
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return Outcome(
        TxnOffsetCommitResponse(topics=topics),
        storing.records,
        producer=Producer(request.producer_id, request.producer_epoch),
        verification=verification,
    )


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
    for topic in request.topics:
        known = machine.image().topic(topic.name)
        if known is None:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        for partition in topic.partitions:
            if not _too_large(machine, partition):
                check(topic.name, known.id, partition.partition_index)


class _Storing:
    """The records of one request, made as its partitions are answered."""

    def __init__(self, machine: GroupMachine, group_id: str, now: Now, expires_ms: int | None = None) -> None:
        self.records: list[CoordinatorRecord] = []
        self._machine = machine
        self._group_id = group_id
        self._now = now
        self._expires_ms = expires_ms

    def store(self, topic: str, topic_id: bytes, partition: _Partition, check: CommitCheck | None = None) -> ErrorCode:
        """Raises what `check` raises."""
        if _too_large(self._machine, partition):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        if check is not None:
            check(topic, topic_id, partition.partition_index)
        offset = CommittedOffset(
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata or "",
            self._now.wall_ms,
            self._expires_ms,
            topic_id,
        )
        self.records.append(offset_record(self._group_id, (topic, partition.partition_index), offset))
        return ErrorCode.NONE


def _too_large(machine: GroupMachine, partition: _Partition) -> bool:
    """Whether its metadata is longer than `offset.metadata.max.bytes`, which counts Java's characters."""
    metadata = partition.committed_metadata or ""
    longest: int = machine.config()["offset.metadata.max.bytes"]
    # No loop over the characters: a request may bring megabytes of them.
    return len(metadata) > longest or len(metadata.encode("utf-16-le", "surrogatepass")) > 2 * longest
