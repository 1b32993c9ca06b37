"""TxnOffsetCommit (key 28): a producer stores, as part of its transaction, where a group goes on reading (KIP-98)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.coordinators import caller
from kwire.broker.offset_partitions import merged, sort_out
from kwire.broker.transaction_verification import verify_offsets
from kwire.coordinator.groups.offsets.commit import commit_in_transaction
from kwire.coordinator.groups.requests import check_group_id
from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.runtime.shard import as_coordinator
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kwire.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.context import RequestContext
    from kwire.storage.verification import VerificationGuard

_KNOWS_LOADING_FROM = 2
"""Producers before this version fail for good when they are told that the coordinator is loading (KAFKA-7296)."""


async def handle(broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    session = context.session
    if not session.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not session.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    valid, others = sort_out(broker, session, request.topics)
    refused = [_refused(topic, code) for topic, code in others]
    if not valid:
        return TxnOffsetCommitResponse(topics=merged(refused))
    request.topics = valid
    who = caller(context)
    try:
        check_group_id(request.group_id)
        guard = await _verify(broker, context, request)
        response = await broker.coordinators.write(
            request.group_id, lambda machine, now: commit_in_transaction(machine, who, request, now, guard)
        )
    except KafkaError as error:
        loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if loading and context.api_version < _KNOWS_LOADING_FROM:
            error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        response = failed(request, error)
    response.topics = merged(refused, response.topics)
    return response


def failed(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])


async def _verify(broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest) -> VerificationGuard | None:
    index = broker.coordinators.groups.partition_of(request.group_id)
    producer = Producer(request.producer_id, request.producer_epoch)
    try:
        return await verify_offsets(broker, context.api_version, request.transactional_id, producer, index)
    except KafkaError as error:
        if error.code is ErrorCode.NETWORK_EXCEPTION:
            # Older producers try again with this one only, and without asking for the group's coordinator.
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from error
        raise as_coordinator(error) from error


def _refused(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )
