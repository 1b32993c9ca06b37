"""What a partition remembers of one producer, and what it demands of its next batch (KIP-98, KIP-360, KIP-890).

A producer numbers its records: a batch's base sequence must follow the last sequence of the batch before it. The last
five batches are remembered, so that one sent again is answered with the offsets it has instead of being written twice.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.control import EndTxnMarker
from kwire.protocol.records.header import (
    CONTROL_FLAG,
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    subtract_sequence,
)
from kwire.storage.validated import Origin
from kwire.storage.verification import Named, Verification

BATCHES_REMEMBERED: Final = 5
"""As many as an idempotent producer may have in flight (max.in.flight.requests.per.connection)."""

NO_OFFSET: Final = -1
NO_COORDINATOR_EPOCH: Final = -1

_LAST_EPOCH: Final = 32767
_EPOCH_BUMPED_PER_TRANSACTION: Final = 2
_new: Final = tuple.__new__
"""Makes a named tuple in one call of C."""


class BatchMetadata(NamedTuple):
    """A batch that was appended. Sequences and offsets inclusive."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    """The batch's max timestamp (ms)."""

    @property
    def first_sequence(self) -> int:
        return subtract_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class CompletedTxn(NamedTuple):
    """A transaction that its marker has ended. Offsets inclusive; the last is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerEntry:
    """The state of one producer id."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "txn_first_offset")

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp: int = NO_TIMESTAMP,
        txn_first_offset: int = NO_OFFSET,
        batches: list[BatchMetadata] | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        """Of the transaction coordinator that wrote the last marker."""
        self.last_timestamp = last_timestamp
        self.txn_first_offset = txn_first_offset
        """Where the ongoing transaction begins; NO_OFFSET if there is none."""
        self.batches = [] if batches is None else batches
        """The last batches of this epoch, the oldest first."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        return self.batches[-1].offset_delta if self.batches else 0

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The remembered batch with the epoch and the sequences of this one."""
        batches = self.batches
        if header.producer_epoch != self.epoch or not batches:
            return None
        if header.base_sequence == batches[-1].last_sequence + 1:  # the next one, as most are
            return None
        last_sequence = header.last_sequence
        for batch in batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == header.base_sequence:
                return batch
        return None

    def copy(self) -> ProducerEntry:
        return ProducerEntry(
            self.producer_id,
            self.epoch,
            self.coordinator_epoch,
            self.last_timestamp,
            self.txn_first_offset,
            self.batches.copy(),
        )

    def follows(self, header: BatchHeader) -> bool:
        """Whether a client's batch is plainly the next one: data with the epoch and the next sequences, of the
        transaction that is open here or, where none is, of none. `append_data` refuses no such batch, and it is none
        that is here already."""
        batches = self.batches
        sequence, attributes = header.base_sequence, header.attributes
        return (
            header.producer_epoch == self.epoch
            and bool(batches)
            and sequence == batches[-1].last_sequence + 1
            and sequence + header.last_offset_delta <= MAX_SEQUENCE
            and bool(attributes & TRANSACTIONAL_FLAG) == (self.txn_first_offset != NO_OFFSET)
            and not attributes & CONTROL_FLAG
        )

    def remember(self, header: BatchHeader, last_sequence: int, base_offset: int) -> None:
        """A data batch was appended at `base_offset`, or will be. `last_sequence` is its own, inclusive."""
        batches, delta, timestamp = self.batches, header.last_offset_delta, header.max_timestamp
        batches.append(_new(BatchMetadata, (last_sequence, base_offset + delta, delta, timestamp)))
        if len(batches) > BATCHES_REMEMBERED:
            del batches[0]
        self.last_timestamp = timestamp

    def _enter_epoch(self, epoch: int) -> None:
        if self.epoch != epoch:
            self.batches.clear()
            self.epoch = epoch

    def append_data(
        self,
        header: BatchHeader,
        base_offset: int,
        origin: Origin,
        partition: Named,
        verification: Verification | None = None,
    ) -> bool:
        """Takes up a data batch at `base_offset`; True where it begins a transaction.

        `verification`: the attempt of the producer, if there is one, to begin a transaction here.

        KafkaError, with the entry in disorder, if the batch may not follow: INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
        and for a client's OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        epoch = header.producer_epoch
        if epoch < self.epoch:
            self._refuse_epoch(epoch, base_offset, origin, partition, "smaller than")
        batches = self.batches
        if origin is Origin.CLIENT:
            if verification is not None:
                known = bool(batches)
                verification.check_sequence(header.base_sequence, known, self.producer_id, base_offset, partition)
            if not (batches and epoch == self.epoch and header.base_sequence == batches[-1].last_sequence + 1):
                self._check_sequence(header, base_offset, partition)
        if self.epoch != epoch:
            self._enter_epoch(epoch)
        self.remember(header, header.last_sequence, base_offset)
        if not header.attributes & TRANSACTIONAL_FLAG:
            if self.txn_first_offset != NO_OFFSET:
                raise KafkaError(
                    ErrorCode.INVALID_TXN_STATE,
                    f"Expected transactional write from producer {self.producer_id} at offset {base_offset} in "
                    f"partition {partition.name}",
                )
            return False
        if self.txn_first_offset != NO_OFFSET:
            return False
        self.txn_first_offset = base_offset
        return True

    def append_marker(
        self,
        header: BatchHeader,
        base_offset: int,
        marker: EndTxnMarker,
        origin: Origin,
        partition: Named,
        version: int,
    ) -> CompletedTxn | None:
        """Takes up the marker at `base_offset`; the transaction it ends, None where that wrote nothing here.

        `version` is the transaction.version under which the marker is written: from 2 on each transaction has an epoch
        of its own (KIP-890), and a marker's must be above the producer's last. KafkaError: INVALID_PRODUCER_EPOCH,
        TRANSACTION_COORDINATOR_FENCED.
        """
        self._check_marker_epoch(header.producer_epoch, base_offset, origin, partition, version)
        if self.coordinator_epoch > marker.coordinator_epoch and origin is not Origin.REPLICATION:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {self.producer_id} at offset {base_offset} in partition "
                f"{partition.name}: {marker.coordinator_epoch} (zombie), {self.coordinator_epoch} (current)",
            )
        first_offset = self.txn_first_offset
        self._enter_epoch(header.producer_epoch)
        self.coordinator_epoch = marker.coordinator_epoch
        self.last_timestamp = marker.timestamp
        self.txn_first_offset = NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        return CompletedTxn(self.producer_id, first_offset, base_offset, not marker.commit)

    def _check_marker_epoch(self, epoch: int, offset: int, origin: Origin, partition: Named, version: int) -> None:
        if version < _EPOCH_BUMPED_PER_TRANSACTION:
            if epoch < self.epoch:
                self._refuse_epoch(epoch, offset, origin, partition, "smaller than")
        elif epoch <= self.epoch:
            # The coordinator may write a marker again. At the last epoch there is none left to bump to.
            again = epoch == self.epoch and (self.txn_first_offset == NO_OFFSET or epoch == _LAST_EPOCH)
            if not again:
                self._refuse_epoch(epoch, offset, origin, partition, "not above")

    def _refuse_epoch(self, epoch: int, offset: int, origin: Origin, partition: Named, relation: str) -> None:
        if origin is not Origin.REPLICATION:  # what the leader has taken, the follower takes
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {self.producer_id} at offset {offset} in {partition.name} is {epoch}, which is "
                f"{relation} the last seen epoch {self.epoch}",
            )

    def _check_sequence(self, header: BatchHeader, offset: int, partition: Named) -> None:
        sequence = header.base_sequence
        epoch = self.epoch
        # Of a producer that is not known here (its records may have been deleted) any sequence is taken.
        if epoch == NO_PRODUCER_EPOCH:
            return
        if header.producer_epoch != epoch:
            if sequence:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"Invalid sequence number for new epoch of producer {self.producer_id} at offset {offset} in "
                    f"partition {partition.name}: {header.producer_epoch} (request epoch), {sequence} (seq. number), "
                    f"{epoch} (current producer epoch)",
                )
            return
        last = self.last_sequence
        if sequence != last + 1 and not (sequence == 0 and last == MAX_SEQUENCE):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {self.producer_id} at offset {offset} in partition "
                f"{partition.name}: {sequence} (incoming seq. number), {last} (current end sequence number)",
            )
