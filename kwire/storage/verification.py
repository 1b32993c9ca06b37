"""That a transaction's coordinator knows of a partition before a record of the transaction is written to it (KIP-890).

    guard = producer_state.begin_verification(…)       None: the transaction has written here already
    … the transaction's coordinator is asked, or told …
    append(batch, verification=guard)                  taken only if the guard is still the producer's

A marker that is written while the coordinator is being asked takes the guard away: its answer was about a transaction
that is over, and what is appended with the guard would be left open for ever. Only where each transaction has an epoch
of its own, it is told from one of the transaction before, which may be written while this one begins.
"""

from __future__ import annotations

from typing import Protocol

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.header import BatchHeader


class Named(Protocol):
    """A partition, for messages."""

    @property
    def name(self) -> str:
        """`topic-partition`"""


class VerificationGuard:
    """Stands for one attempt to begin a transaction on a partition; compared by identity."""

    __slots__ = ()


class Verification:
    """An attempt of one producer."""

    __slots__ = ("epoch", "guard", "lowest_sequence", "started_ms", "supports_epoch_bump")

    def __init__(self, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int) -> None:
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        """Of the batches of this epoch that wait for it: no other may be the first to be written."""
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump
        """Whether the producer begins each transaction with an epoch of its own, and so with sequence 0."""
        self.started_ms = now_ms

    def again(self, sequence: int, epoch: int) -> None:
        """Another batch waits for the same."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence

    def settled_by(self, header: BatchHeader) -> bool:
        """Whether this batch of the producer begins the transaction, or ends it: then nothing waits for an answer."""
        of_the_one_before = header.control and self.supports_epoch_bump and header.producer_epoch == self.epoch
        return header.transactional and not of_the_one_before

    def check_sequence(self, sequence: int, known: bool, producer_id: int, offset: int, partition: Named) -> None:
        """Raises OUT_OF_ORDER_SEQUENCE_NUMBER where another batch must come first.

        `known`: whether a batch of the producer's last epoch is remembered here.
        """
        if self.supports_epoch_bump and sequence and not known:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for producer {producer_id} at offset {offset} in partition "
                f"{partition.name}: {sequence} (incoming seq. number). Expected sequence 0 for transactions v2 "
                f"idempotent producer with no existing state.",
            )
        if sequence > self.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id} at offset {offset} in partition "
                f"{partition.name}: {sequence} (incoming seq. number), {self.lowest_sequence} (earliest seen sequence)",
            )
