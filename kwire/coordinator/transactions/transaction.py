"""What the coordinator knows of one transactional id."""

from __future__ import annotations

from typing import NamedTuple

from kwire.coordinator.runtime.outcome import Producer
from kwire.coordinator.transactions.states import TransactionState
from kwire.protocol.types import TopicPartition

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIME = -1

LAST_EPOCH = 32767
"""Never a client's: the coordinator can always fence the producer with it."""

EPOCH_BUMP = 2
"""The transaction.version from which each transaction has a producer epoch of its own (KIP-890)."""


class Transaction(NamedTuple):
    """Times are ms since the Unix epoch, NO_TIME where there is none."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState
    update_ms: int
    """When something was written last."""
    start_ms: int = NO_TIME
    """When the first partition was added."""
    partitions: frozenset[TopicPartition] = frozenset()
    """Those whose records this transaction's end decides about; none after it."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before what was written last."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id from the completion on, where the epochs of this one have run out."""
    client_version: int = 0
    """The transaction.version by which its client speaks."""

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.epoch)

    @property
    def epochs_exhausted(self) -> bool:
        return epochs_exhausted(self.epoch)

    @property
    def bumps_epoch(self) -> bool:
        """Whether its end has an epoch above that of its records."""
        return self.client_version >= EPOCH_BUMP

    @property
    def commits(self) -> bool:
        """How a transaction ends that is decided."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


def epochs_exhausted(epoch: int) -> bool:
    """Whether a producer with this epoch needs a new producer id to go on."""
    return epoch >= LAST_EPOCH - 1
