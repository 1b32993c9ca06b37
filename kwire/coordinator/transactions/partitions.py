"""Partitions of a transaction: added by AddPartitionsToTxn and AddOffsetsToTxn, checked by brokers (KIP-890)."""

from __future__ import annotations

from collections.abc import Collection

from kwire.coordinator.runtime.outcome import Now, Outcome, Producer
from kwire.coordinator.transactions.machine import TransactionMachine
from kwire.coordinator.transactions.states import TransactionState
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.types import TopicPartition


def add_partitions(
    machine: TransactionMachine,
    now: Now,
    transactional_id: str,
    producer: Producer,
    partitions: Collection[TopicPartition],
    client_version: int,
) -> Outcome[None]:
    """Begins a transaction where there is none.

    Raises INVALID_REQUEST, CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, UNSUPPORTED_VERSION.
    """
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if machine.pending(transactional_id):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    before = machine.transactions.get(transactional_id)
    if before is None or before.producer_id != producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if before.epoch != producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    machine.check_client_version(client_version)
    ongoing = before.state is TransactionState.ONGOING
    if ongoing and before.partitions.issuperset(partitions):
        return Outcome(None)
    after = before._replace(
        state=TransactionState.ONGOING,
        partitions=before.partitions.union(partitions),
        start_ms=before.start_ms if ongoing else now.wall_ms,
        update_ms=now.wall_ms,
        client_version=client_version,
    )
    return machine.transition(transactional_id, before, after, None)


def verify_partitions(
    machine: TransactionMachine, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Whether each belongs to the producer's transaction: NONE or TRANSACTION_ABORTABLE.

    Raises INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    found = machine.transactions.committed(transactional_id)
    if found is None or found.producer_id != producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if found.epoch != producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if found.state.prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        partition: ErrorCode.NONE if partition in found.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }
