"""InitProducerId for a transactional id (KIP-98, KIP-360): ends what another instance has open, and fences it."""

from __future__ import annotations

from kwire.coordinator.runtime.outcome import Now, Outcome, Pending, Producer
from kwire.coordinator.transactions.effects import ProducerIdNeeded
from kwire.coordinator.transactions.ending import fenced
from kwire.coordinator.transactions.machine import TransactionMachine
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.transaction import NO_EPOCH, NO_TIME, Transaction, epochs_exhausted
from kwire.protocol.errors import ErrorCode, KafkaError


def check(transactional_id: str, timeout_ms: int, max_timeout_ms: int) -> None:
    """What is refused without a look at the transactional id: INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT."""
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not 0 < timeout_ms <= max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def init_producer_id(
    machine: TransactionMachine,
    now: Now,
    transactional_id: str,
    timeout_ms: int,
    expected: Producer | None = None,
    *,
    new_producer_id: int | None = None,
) -> Outcome[Producer]:
    """The producer to go on as. `expected`: what a client that goes on after an error has been so far.

    Raises ProducerIdNeeded, CONCURRENT_TRANSACTIONS (also after the abort of what was ongoing), PRODUCER_FENCED.
    """
    if machine.pending(transactional_id):
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    before = machine.transactions.get(transactional_id)
    if before is None:
        before = Transaction(
            _needed(new_producer_id), NO_EPOCH, timeout_ms, TransactionState.EMPTY, update_ms=now.wall_ms
        )
    elif expected is not None and not _known(before, expected):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if before.state is TransactionState.ONGOING:
        return _fence(machine, now, transactional_id, before, new_producer_id)
    producer, last_epoch = _next(machine, transactional_id, before, expected, new_producer_id)
    after = before._replace(
        producer_id=producer.id,
        epoch=producer.epoch,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        start_ms=NO_TIME,
        update_ms=now.wall_ms,
    )
    return machine.transition(transactional_id, before, after, producer, last_epoch=last_epoch)


def _known(before: Transaction, expected: Producer) -> bool:
    """Whether the producer is the one at hand, or had that producer id until its epochs ran out."""
    return expected.id == before.producer_id or (
        expected.id == before.previous_producer_id and epochs_exhausted(expected.epoch)
    )


def _next(
    machine: TransactionMachine,
    transactional_id: str,
    before: Transaction,
    expected: Producer | None,
    new_producer_id: int | None,
) -> tuple[Producer, int]:
    """The producer from now on, and its last epoch."""
    if before.epochs_exhausted:
        if expected is None or expected.epoch == before.epoch:
            return Producer(_needed(new_producer_id), 0), NO_EPOCH if expected is None else before.epoch
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Apache Kafka: there is no epoch to give
    bumped = Producer(before.producer_id, before.epoch + 1)
    if expected is None:
        return bumped, NO_EPOCH
    if before.epoch in (NO_EPOCH, expected.epoch):
        return bumped, before.epoch
    last_epoch = machine.last_epoch(transactional_id)
    if expected.epoch == last_epoch:  # asked again by a client that did not get the answer
        return before.producer, last_epoch
    raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _fence(
    machine: TransactionMachine, now: Now, transactional_id: str, before: Transaction, new_producer_id: int | None
) -> Outcome[Producer]:
    after, last_epoch = fenced(
        before,
        transaction_version=machine.transaction_version(),
        now_ms=now.wall_ms,
        new_producer_id=new_producer_id,
    )
    # The client asks again until the abort is complete, and gets an epoch that nobody has seen.
    again: Pending[Producer] = Pending()
    again.answer(KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS))
    return machine.transition(transactional_id, before, after, again, last_epoch=last_epoch)


def _needed(new_producer_id: int | None) -> int:
    if new_producer_id is None:
        raise ProducerIdNeeded
    return new_producer_id
