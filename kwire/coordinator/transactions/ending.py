"""How a transaction ends: the epoch of its markers, and the producer id and epoch its client goes on with.

Transaction version 2 (KIP-890) ends every transaction with an epoch above that of its records, so that what the
client had still under way can no more be written. When the epochs of a producer id run out, the end is with the very
last one, and from the completion on the client has a new producer id.
"""

from __future__ import annotations

from kwire.coordinator.transactions.effects import ProducerIdNeeded
from kwire.coordinator.transactions.states import TransactionState
from kwire.coordinator.transactions.transaction import (
    EPOCH_BUMP,
    LAST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
)


def decided(
    before: Transaction, *, commit: bool, client_version: int, now_ms: int, new_producer_id: int | None
) -> tuple[Transaction, int | None]:
    """The transaction once its client has ended it, and its last epoch (None: as before).

    Raises ProducerIdNeeded.
    """
    after = before._replace(
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        client_version=client_version,
        next_producer_id=NO_PRODUCER_ID,
        # An abort of a transaction that has not begun: it begins and ends now.
        start_ms=before.start_ms if before.state is TransactionState.ONGOING else now_ms,
        update_ms=now_ms,
    )
    if client_version < EPOCH_BUMP:
        return after, None
    if before.epochs_exhausted:
        if new_producer_id is None:
            raise ProducerIdNeeded
        after = after._replace(next_producer_id=new_producer_id)
    return after._replace(epoch=min(before.epoch + 1, LAST_EPOCH)), before.epoch


def fenced(
    before: Transaction, *, transaction_version: int, now_ms: int, new_producer_id: int | None
) -> tuple[Transaction, int]:
    """The ongoing transaction once the coordinator aborts it, and its last epoch.

    The epoch goes up, so that its producer can write no more. Raises ProducerIdNeeded.
    """
    if transaction_version < EPOCH_BUMP:
        raised = before._replace(epoch=min(before.epoch + 1, LAST_EPOCH))
        after, _ = decided(raised, commit=False, client_version=0, now_ms=now_ms, new_producer_id=None)
        return after, NO_EPOCH
    after, _ = decided(
        before, commit=False, client_version=transaction_version, now_ms=now_ms, new_producer_id=new_producer_id
    )
    return after, before.epoch


def completed(before: Transaction, now_ms: int) -> Transaction:
    """The transaction once all its markers are written."""
    after = before._replace(
        state=TransactionState.COMPLETE_COMMIT if before.commits else TransactionState.COMPLETE_ABORT,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        update_ms=now_ms,
    )
    if before.bumps_epoch and before.next_producer_id != NO_PRODUCER_ID:
        return after._replace(producer_id=before.next_producer_id, epoch=0)
    return after
