"""Transactions that are open for longer than their client wants, and are aborted.

They are looked for every `transaction.abort.timed.out.transaction.cleanup.interval.ms`, as long as there are open ones.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kwire.coordinator.runtime.outcome import Now, Outcome, Producer
from kwire.coordinator.transactions.ending import fenced
from kwire.coordinator.transactions.states import TransactionState
from kwire.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kwire.coordinator.transactions.machine import TransactionMachine

_KEY = ("timeouts",)
_NEVER = 2**31 - 1
"""A timeout that does not come, however long the transaction is open."""


def watch(machine: TransactionMachine, now: Now, transactional_id: str) -> None:
    """Sees to it that this open transaction is looked after."""
    machine.ongoing.add(transactional_id)
    _watch(machine, now)


def _watch(machine: TransactionMachine, now: Now) -> None:
    if _KEY not in machine.deadlines:
        interval_ms = machine.config()["transaction.abort.timed.out.transaction.cleanup.interval.ms"]
        machine.deadlines.schedule(_KEY, now.ms + interval_ms, partial(_look_through, machine))


def _look_through(machine: TransactionMachine, now: Now) -> None:
    for transactional_id in sorted(machine.ongoing):
        if machine.pending(transactional_id):
            continue
        found = machine.transactions.get(transactional_id)
        if found is None or found.state is not TransactionState.ONGOING:
            machine.ongoing.discard(transactional_id)
        elif found.timeout_ms != _NEVER and found.start_ms + found.timeout_ms < now.wall_ms:
            machine.effects.timed_out(transactional_id, found.producer)
    if machine.ongoing:
        _watch(machine, now)


def abort(
    machine: TransactionMachine,
    now: Now,
    transactional_id: str,
    producer: Producer,
    *,
    new_producer_id: int | None = None,
) -> Outcome[None]:
    """Aborts that producer's open transaction and fences the producer.

    Raises ProducerIdNeeded, CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, INVALID_TXN_STATE:
    the client was quicker.
    """
    if machine.pending(transactional_id):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    before = machine.transactions.get(transactional_id)
    if before is None or before.producer_id != producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if before.epoch != producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if before.state is not TransactionState.ONGOING:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    after, last_epoch = fenced(
        before,
        transaction_version=machine.transaction_version(),
        now_ms=now.wall_ms,
        new_producer_id=new_producer_id,
    )
    return machine.transition(transactional_id, before, after, None, last_epoch=last_epoch)
