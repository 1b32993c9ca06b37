"""A transaction as the record that __transaction_state keeps of it (TransactionLogKey, TransactionLogValue)."""

from __future__ import annotations

from kwire.coordinator.runtime.outcome import CoordinatorRecord
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.transaction import NO_PRODUCER_ID, Transaction
from kwire.protocol.coordinator_records.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue


def record_of(transactional_id: str, transaction: Transaction, transaction_version: int) -> CoordinatorRecord:
    """The record as this transaction.version has it: of 0, in a version of the value that has no tagged fields.

    What has been begun by version 2 is written such that it can be ended by it.
    """
    flexible = transaction_version >= 1 or transaction.client_version > 0
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_grouped(transaction),
        transaction_last_update_timestamp_ms=transaction.update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        previous_producer_id=transaction.previous_producer_id if flexible else NO_PRODUCER_ID,
        next_producer_id=transaction.next_producer_id if flexible else NO_PRODUCER_ID,
        client_transaction_version=transaction.client_version,
    )
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), value, int(flexible))


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def transaction_of(value: TransactionLogValue) -> Transaction:
    """Raises ValueError for a state that there is not."""
    return Transaction(
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=TransactionState(value.transaction_status),
        update_ms=value.transaction_last_update_timestamp_ms,
        start_ms=value.transaction_start_timestamp_ms,
        partitions=frozenset(
            (topic.topic, index) for topic in value.transaction_partitions or () for index in topic.partition_ids
        ),
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )


def _grouped(transaction: Transaction) -> list[PartitionsSchema] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    topics: dict[str, PartitionsSchema] = {}
    for name, index in sorted(transaction.partitions):
        topics.setdefault(name, PartitionsSchema(topic=name)).partition_ids.append(index)
    return list(topics.values())
