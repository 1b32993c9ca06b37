"""Records of a transaction are taken only where the partition belongs to that transaction (KIP-890).

Before v12 of Produce the client has added the partition, and the coordinator is asked whether it has; from v12 on
(transaction version 2) the broker adds it. Where the log has records of the very transaction, that has been done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import InvalidBatch
from kwire.protocol.records.header import BatchHeader
from kwire.protocol.types import TopicPartition
from kwire.storage.producer_entry import NO_OFFSET

if TYPE_CHECKING:
    from kwire.broker.broker import Broker

_KNOWS_ABORTABLE_FROM = 11
_ADDS_FROM = 12

_NOT_NOW = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


async def verify(
    broker: Broker, version: int, transactional_id: str, batches: Mapping[TopicPartition, BatchHeader]
) -> dict[TopicPartition, KafkaError]:
    """Why the partitions must not take these transactional batches of a Produce; nothing for those that may.

    Raises INVALID_PRODUCER_ID_MAPPING where they are of several producers.
    """
    producers = {(header.producer_id, header.producer_epoch) for header in batches.values()}
    if len(producers) != 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    if version < _ADDS_FROM and not broker.config["transaction.partition.verification.enable"]:
        return {}
    ((producer_id, epoch),) = producers
    unknown = [partition for partition in batches if not _is_open(broker, partition, producer_id, epoch)]
    if not unknown:
        return {}
    transactions = broker.coordinators.transactions
    if transactions.coordinator.partitions:
        codes = await transactions.add_partitions(
            transactional_id, producer_id, epoch, unknown, verify_only=version < _ADDS_FROM
        )
    else:
        codes = dict.fromkeys(unknown, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return {partition: _told(code, version) for partition, code in codes.items() if code is not ErrorCode.NONE}


def _is_open(broker: Broker, partition: TopicPartition, producer_id: int, epoch: int) -> bool:
    found = broker.replicas.partitions.get(partition)
    if found is None or found.log is None:
        return False
    entry = found.log.producer_state.entries.get(producer_id)
    return entry is not None and entry.epoch == epoch and entry.txn_first_offset != NO_OFFSET


def _told(code: ErrorCode, version: int) -> KafkaError:
    """What the coordinator's error is to the producer."""
    if code in _NOT_NOW or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < _ADDS_FROM):
        # An error on which every client tries again, without asking for metadata.
        return InvalidBatch(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}",
        )
    if code is ErrorCode.PRODUCER_FENCED:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _KNOWS_ABORTABLE_FROM:
        code = ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.INVALID_TXN_STATE:
        return InvalidBatch(code, "Partition was not added to the transaction")
    return KafkaError(code)
