"""Transactional ids that nobody has used for `transactional.id.expiration.ms`: they are forgotten, by a tombstone.

They are looked for every `transaction.remove.expired.transaction.cleanup.interval.ms`, as long as there are any.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kwire.coordinator.runtime.outcome import Now, Outcome
from kwire.coordinator.transactions.records import tombstone
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.transaction import Transaction
from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.coordinator.transactions.machine import TransactionMachine

_KEY = ("expiration",)
_CHARACTERS_AT_ONCE = 16384
"""Of the transactional ids in one batch of tombstones, which few topics will find too large."""
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)

_AT_REST = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def watch(machine: TransactionMachine, now: Now) -> None:
    """Sees to it that transactional ids are looked through."""
    if _KEY not in machine.deadlines:
        interval_ms = machine.config()["transaction.remove.expired.transaction.cleanup.interval.ms"]
        machine.deadlines.schedule(_KEY, now.ms + interval_ms, partial(_look_through, machine))


def _look_through(machine: TransactionMachine, now: Now) -> None:
    portion: list[str] = []
    portions = [portion]
    characters = 0
    for transactional_id, transaction in machine.transactions.items():
        if _expired(machine, transactional_id, transaction, now):
            if portion and characters + len(transactional_id) > _CHARACTERS_AT_ONCE:
                portions.append(portion := [])
                characters = 0
            portion.append(transactional_id)
            characters += len(transactional_id)
    for expired in portions:
        if expired:
            _forget_soon(machine, expired, now)
    if len(machine.transactions):
        watch(machine, now)


def _forget_soon(machine: TransactionMachine, expired: list[str], now: Now) -> None:
    machine.deadlines.schedule((*_KEY, expired[0]), now.ms, partial(_forget, machine, expired))


def _expired(machine: TransactionMachine, transactional_id: str, transaction: Transaction, now: Now) -> bool:
    return (
        transaction.state in _AT_REST
        and transaction.update_ms <= now.wall_ms - machine.config()["transactional.id.expiration.ms"]
        and not machine.pending(transactional_id)
    )


def _forget(machine: TransactionMachine, expired: list[str], now: Now) -> Outcome[None]:
    """Forgets those of them that have not been used meanwhile."""
    gone = [
        transactional_id
        for transactional_id in expired
        if (found := machine.transactions.get(transactional_id)) is not None
        and _expired(machine, transactional_id, found, now)
    ]

    def committed(now: Now) -> None:
        for transactional_id in gone:
            machine.forget(transactional_id)

    def failed(error: KafkaError, now: Now) -> None:
        if error.code in _TOO_LARGE and len(gone) > 1:
            half = len(gone) // 2
            _forget_soon(machine, gone[:half], now)
            _forget_soon(machine, gone[half:], now)

    records = [tombstone(transactional_id) for transactional_id in gone]
    return Outcome(None, records, committed=committed, failed=failed)
