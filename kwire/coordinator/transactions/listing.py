"""ListTransactions and DescribeTransactions (KIP-664, KIP-994, KIP-1152): what was committed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from kwire.coordinator.runtime.outcome import Now
from kwire.coordinator.transactions.machine import TransactionMachine
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.transaction import Transaction
from kwire.protocol.errors import ErrorCode, KafkaError


class Filter(NamedTuple):
    """Which transactions are asked for."""

    states: Collection[TransactionState] | None = None
    """Only those in one of these states; None: in any."""
    producer_ids: Collection[int] = ()
    """Only those of these producers, if any are given."""
    longer_than_ms: int = -1
    """Only those that began so long ago; negative: all."""
    matches: Callable[[str], object] | None = None
    """Only those whose transactional id this finds good."""

    def takes(self, transactional_id: str, transaction: Transaction, now: Now) -> bool:
        """Whether it is asked for."""
        return (
            (self.states is None or transaction.state in self.states)
            and (not self.producer_ids or transaction.producer_id in self.producer_ids)
            and (self.longer_than_ms < 0 or now.wall_ms - transaction.start_ms > self.longer_than_ms)
            and (self.matches is None or bool(self.matches(transactional_id)))
        )


def describe_transaction(machine: TransactionMachine, transactional_id: str) -> Transaction:
    """Raises TRANSACTIONAL_ID_NOT_FOUND."""
    found = machine.transactions.committed(transactional_id)
    if found is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return found
