"""All markers of a transaction are written: its end."""

from __future__ import annotations

from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.coordinator.transactions.effects import MarkersDue
from kwire.coordinator.transactions.ending import completed
from kwire.coordinator.transactions.machine import TransactionMachine
from kwire.protocol.errors import ErrorCode, KafkaError


def complete(machine: TransactionMachine, now: Now, due: MarkersDue) -> Outcome[None]:
    """Raises INVALID_TXN_STATE where that transaction does not wait for markers any more."""
    before = machine.transactions.get(due.transactional_id)
    if before is None or not before.state.prepared or before.producer != due.transaction.producer:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    return machine.transition(due.transactional_id, before, completed(before, now.wall_ms), None)
