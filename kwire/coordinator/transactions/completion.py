"""All markers of a transaction are written: its end."""

from __future__ import annotations

from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.coordinator.transactions.effects import MarkersDue
from kwire.coordinator.transactions.ending import completed
from kwire.coordinator.transactions.machine import TransactionMachine
from kwire.protocol.errors import ErrorCode, KafkaError


def complete(machine: TransactionMachine, now: Now, due: MarkersDue) -> Outcome[None]:
    """Writes nothing where the end is on its way. Raises INVALID_TXN_STATE where it is there, or of another one."""
    before = machine.transactions.committed(due.transactional_id)
    if before != due.transaction:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    if machine.transactions.get(due.transactional_id) is not before:
        return Outcome(None)
    return machine.transition(due.transactional_id, before, completed(before, now.wall_ms), None)
