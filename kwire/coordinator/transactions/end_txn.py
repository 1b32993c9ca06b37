"""EndTxn: a client commits or aborts its transaction.

Up to version 4 of the request the producer goes on with its epoch; an end asked for twice is answered twice. From
version 5 on (transaction version 2, KIP-890) it goes on with the next one, so that a request with the epoch before is
the same one again, and one with the present epoch a new one, which may abort what has not begun:

                    abort, again   abort    commit, again   commit
    Empty           fenced         aborts   fenced          invalid
    CompleteAbort   done           aborts   invalid         invalid
    CompleteCommit  invalid        aborts   done            invalid
"""

from __future__ import annotations

from kwire.coordinator.runtime.outcome import Now, Outcome, Producer
from kwire.coordinator.transactions.ending import completed, decided
from kwire.coordinator.transactions.machine import TransactionMachine
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.transaction import (
    EPOCH_BUMP,
    LAST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
)
from kwire.protocol.errors import ErrorCode, KafkaError

NO_PRODUCER = Producer(NO_PRODUCER_ID, NO_EPOCH)

_COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def end_txn(
    machine: TransactionMachine,
    now: Now,
    transactional_id: str,
    producer: Producer,
    client_version: int,
    *,
    commit: bool,
    new_producer_id: int | None = None,
) -> Outcome[Producer]:
    """The producer to go on as; NO_PRODUCER below transaction version 2, where it stays the same.

    Raises ProducerIdNeeded, INVALID_REQUEST, CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
    INVALID_TXN_STATE, UNSUPPORTED_VERSION.
    """
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    # What is not committed yet may be taken back: it has fenced nobody.
    before = machine.transactions.committed(transactional_id) or machine.transactions.get(transactional_id)
    if before is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    bumps = client_version >= EPOCH_BUMP
    pending = machine.pending(transactional_id)
    if bumps:
        if pending:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        done = _check_bumping(before, producer, commit=commit)
    else:
        done = _check(before, producer, commit=commit, pending=pending)
    if done:
        return Outcome(before.producer if bumps else NO_PRODUCER)
    machine.check_client_version(client_version)
    after, last_epoch = decided(
        before, commit=commit, client_version=client_version, now_ms=now.wall_ms, new_producer_id=new_producer_id
    )
    goes_on_as = completed(after, now.wall_ms).producer if bumps else NO_PRODUCER
    return machine.transition(transactional_id, before, after, goes_on_as, last_epoch=last_epoch)


def _check(before: Transaction, producer: Producer, *, commit: bool, pending: bool) -> bool:
    """Whether it has been done already."""
    if before.producer_id != producer.id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if before.epoch != producer.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if pending:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if before.state is TransactionState.ONGOING:
        return False
    if before.state in _COMPLETE and before.commits == commit:
        return True
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def _check_bumping(before: Transaction, producer: Producer, *, commit: bool) -> bool:
    """The same for version 2."""
    complete = before.state in _COMPLETE
    # The epochs had run out, and the client does not know yet that it has a new producer id.
    overflown = producer == Producer(before.previous_producer_id, LAST_EPOCH - 1) and before.epoch == 0
    again = complete and (overflown or before.epoch == producer.epoch + 1)
    if before.producer_id != producer.id and not overflown:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if before.epoch != producer.epoch and not again:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if before.state is TransactionState.ONGOING:
        return False
    if again and before.commits == commit:
        return True
    if again or commit:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    return False
