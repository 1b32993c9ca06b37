"""Records of a transaction are taken only where the partition belongs to that transaction (KIP-890).

Before v12 of Produce and v5 of TxnOffsetCommit the client has added the partition, and the coordinator is asked whether
it has; from then on (transaction version 2) the broker adds it. Where the log has records of the very transaction, that
has been done.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import trio

from kwire.client.errors import ClientError
from kwire.coordinator.runtime.outcome import Producer
from kwire.metadata.names import CONSUMER_OFFSETS
from kwire.ports.at_once import needs_task
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kwire.protocol.records import InvalidBatch
from kwire.protocol.records.header import NO_SEQUENCE, BatchHeader
from kwire.protocol.types import TopicPartition
from kwire.storage.verification import VerificationGuard

if TYPE_CHECKING:
    from kwire.broker.broker import Broker
    from kwire.broker.peers import Peers

logger = logging.getLogger(__name__)


class Support(Enum):
    """What the version of a request stands for."""

    VERIFIES = 0
    """The client adds partitions itself."""
    KNOWS_ABORTABLE = 1
    """And understands TRANSACTION_ABORTABLE."""
    ADDS = 2
    """The broker adds partitions; each transaction has an epoch of its own."""

    @classmethod
    def of_produce(cls, version: int) -> Support:
        return cls((version > 10) + (version > 11))

    @classmethod
    def of_txn_offset_commit(cls, version: int) -> Support:
        return cls((version > 3) + (version > 4))


class Verified(NamedTuple):
    """With what partitions take the batches, and why some do not."""

    guards: dict[TopicPartition, VerificationGuard]
    refused: dict[TopicPartition, KafkaError]


_NOT_NOW = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


async def verify_batches(
    broker: Broker, version: int, transactional_id: str, batches: Mapping[TopicPartition, BatchHeader]
) -> Verified:
    """For the transactional batches of a Produce.

    Raises INVALID_PRODUCER_ID_MAPPING where they are of several producers.
    """
    producers = {Producer(header.producer_id, header.producer_epoch) for header in batches.values()}
    if len(producers) != 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    support = Support.of_produce(version)
    sequences = {partition: header.base_sequence for partition, header in batches.items()}
    guards, refused = await _verify(broker, support, transactional_id, producers.pop(), sequences)
    return Verified(guards, {partition: _told(code, support) for partition, code in refused.items()})


async def verify_offsets(
    broker: Broker, version: int, transactional_id: str, producer: Producer, index: int
) -> VerificationGuard | None:
    """For a TxnOffsetCommit to partition `index` of __consumer_offsets; None where no guard is needed.

    Raises NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_EPOCH, and what the transaction's coordinator answers.
    """
    partition = CONSUMER_OFFSETS, index
    support = Support.of_txn_offset_commit(version)
    guards, refused = await _verify(broker, support, transactional_id, producer, {partition: NO_SEQUENCE})
    if partition in refused:
        raise KafkaError(refused[partition])
    return guards.get(partition)


async def _verify(
    broker: Broker,
    support: Support,
    transactional_id: str,
    producer: Producer,
    sequences: Mapping[TopicPartition, int],
) -> tuple[dict[TopicPartition, VerificationGuard], dict[TopicPartition, ErrorCode]]:
    adds = support is Support.ADDS
    if not adds and not broker.config["transaction.partition.verification.enable"]:
        return {}, {}
    guards, refused = _guards(broker, producer, sequences, adds=adds)
    if guards:
        await needs_task()
        codes = await _ask_patiently(broker, support, transactional_id, producer, guards)
        refused |= {partition: code for partition, code in codes.items() if code is not ErrorCode.NONE}
    return guards, refused


def _guards(
    broker: Broker, producer: Producer, sequences: Mapping[TopicPartition, int], *, adds: bool
) -> tuple[dict[TopicPartition, VerificationGuard], dict[TopicPartition, ErrorCode]]:
    """Of the partitions that need one, and why there is none for others."""
    guards: dict[TopicPartition, VerificationGuard] = {}
    refused: dict[TopicPartition, ErrorCode] = {}
    for partition, sequence in sequences.items():
        try:
            found = broker.replicas.partition(*partition)
            guard = found.begin_verification(producer.id, sequence, producer.epoch, supports_epoch_bump=adds)
        except KafkaError as error:
            refused[partition] = error.code
        else:
            if guard is not None:
                guards[partition] = guard
    return guards, refused


async def _ask_patiently(
    broker: Broker,
    support: Support,
    transactional_id: str,
    producer: Producer,
    partitions: Mapping[TopicPartition, VerificationGuard],
) -> dict[TopicPartition, ErrorCode]:
    """As `_ask`; before a partition is added, the markers of the transaction before may still be under way.

    It is this broker that waits for them: one that is asked would keep those waiting that ask after this one.
    """
    transactions = broker.coordinators.transactions
    patient_until = transactions.patient_until()
    while True:
        codes = await _ask(broker, support, transactional_id, producer, partitions)
        concurrent = support is Support.ADDS and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
        if not concurrent or trio.current_time() >= patient_until:
            return codes
        await transactions.back_off(transactional_id)


async def _ask(
    broker: Broker,
    support: Support,
    transactional_id: str,
    producer: Producer,
    partitions: Mapping[TopicPartition, VerificationGuard],
) -> dict[TopicPartition, ErrorCode]:
    """What the coordinator says, in the words of a producer."""
    transactions = broker.coordinators.transactions
    verify_only = support is not Support.ADDS
    try:
        coordinator = transactions.coordinator_of(transactional_id)
    except KafkaError as error:
        return dict.fromkeys(partitions, error.code)
    if coordinator == broker.id:
        codes = await transactions.add_partitions(
            transactional_id, producer.id, producer.epoch, partitions, verify_only=verify_only
        )
    else:
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for name, index in partitions:
            topics.setdefault(name, AddPartitionsToTxnTopic(name=name)).partitions.append(index)
        asked = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=list(topics.values()),
        )
        codes = await _ask_peer(transactions.peers, coordinator, asked, partitions)
    return {partition: _to_producer(code, support) for partition, code in codes.items()}


async def _ask_peer(
    peers: Peers, coordinator: int, asked: AddPartitionsToTxnTransaction, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    request = AddPartitionsToTxnRequest(transactions=[asked])
    try:
        response: AddPartitionsToTxnResponse = await peers.call(coordinator, request)
    except ClientError as error:
        logger.info("transaction coordinator did not answer broker=%d error=%s", coordinator, error)
        return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
    codes = dict.fromkeys(partitions, ErrorCode(response.error_code))
    for result in response.results_by_transaction:
        for topic in result.topic_results:
            for partition in topic.results_by_partition:
                codes[topic.name, partition.partition_index] = ErrorCode(partition.partition_error_code)
    return codes


def _to_producer(code: ErrorCode, support: Support) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and support is Support.VERIFIES:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _told(code: ErrorCode, support: Support) -> KafkaError:
    """The error in the answer to a Produce."""
    if code in _NOT_NOW or (code is ErrorCode.CONCURRENT_TRANSACTIONS and support is not Support.ADDS):
        # An error on which every client tries again, without asking for metadata.
        return InvalidBatch(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}",
        )
    if code is ErrorCode.INVALID_TXN_STATE:
        return InvalidBatch(code, "Partition was not added to the transaction")
    return KafkaError(code)
