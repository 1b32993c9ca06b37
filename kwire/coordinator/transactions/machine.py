"""The state of one partition of __transaction_state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwire.config.broker import BrokerConfig
from kwire.coordinator.runtime.deadlines import Deadlines
from kwire.coordinator.runtime.outcome import CoordinatorRecord, Now, Outcome, Pending, Producer
from kwire.coordinator.runtime.timeline import Timeline, TimelineDict
from kwire.coordinator.transactions import expiration, timeouts
from kwire.coordinator.transactions.effects import Effects, MarkersDue
from kwire.coordinator.transactions.records import record_of, transaction_of
from kwire.coordinator.transactions.states import PREVIOUS, TransactionState
from kwire.coordinator.transactions.transaction import NO_EPOCH, Transaction
from kwire.protocol.coordinator_records.transaction_log import TransactionLogKey, TransactionLogValue
from kwire.protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")


class TransactionMachine:
    """The transactional ids of one partition. The operations on it are functions in the modules beside it."""

    def __init__(
        self, config: Callable[[], BrokerConfig], transaction_version: Callable[[], int], effects: Effects
    ) -> None:
        """`config`, `transaction_version` (the finalized feature): the newest, whenever they are called."""
        self.timeline = Timeline()
        self.deadlines = Deadlines()
        self.config = config
        self.transaction_version = transaction_version
        self.effects = effects
        self.transactions: TimelineDict[str, Transaction] = TimelineDict(self.timeline)
        """By transactional id."""
        self.ongoing: set[str] = set()
        """The transactional ids with an open transaction, and some that had one (`timeouts.py`)."""
        self._last_epochs: dict[str, tuple[Producer, int]] = {}

    # State machine

    def replay(self, record: CoordinatorRecord, producer: Producer | None) -> None:
        assert isinstance(record.key, TransactionLogKey)
        if record.value is None:
            self.transactions.pop(record.key.transactional_id)
        else:
            assert isinstance(record.value, TransactionLogValue)
            self.transactions[record.key.transactional_id] = transaction_of(record.value)

    def replay_marker(self, producer: Producer, *, commit: bool) -> None:
        """Nothing: the coordinator's own records belong to no transaction."""

    def loaded(self, now: Now) -> None:
        for transactional_id, transaction in self.transactions.items():
            self._entered(transactional_id, transaction, now)

    def unloaded(self, now: Now) -> None:
        """Nothing: nobody waits here."""

    # For the operations

    def pending(self, transactional_id: str) -> bool:
        """Whether something about it is on its way that is to be waited for: a write, or markers."""
        committed = self.transactions.committed(transactional_id)
        return self.transactions.get(transactional_id) is not committed or (
            committed is not None and committed.state.prepared
        )

    def check_client_version(self, client_version: int) -> None:
        """Raises UNSUPPORTED_VERSION for a client of transaction version 2 while the records cannot carry that."""
        if client_version > 0 and self.transaction_version() == 0:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The feature transaction.version is at 0.")

    def last_epoch(self, transactional_id: str) -> int:
        """The epoch of its producer before the last one, where it is the same process that goes on (KIP-360).

        NO_EPOCH otherwise; like Apache Kafka's coordinator, another one does not know it.
        """
        producer, last_epoch = self._last_epochs.get(transactional_id, (None, NO_EPOCH))
        found = self.transactions.get(transactional_id)
        return last_epoch if found is not None and found.producer == producer else NO_EPOCH

    def transition(
        self,
        transactional_id: str,
        before: Transaction,
        after: Transaction,
        response: T | Pending[T],
        *,
        last_epoch: int | None = None,
    ) -> Outcome[T]:
        """Writes `after`, with `last_epoch` as above (None: it stays)."""
        if before.state not in PREVIOUS[after.state]:
            raise AssertionError(f"{transactional_id!r} can't go from {before.state.title} to {after.state.title}")
        after = after._replace(previous_producer_id=before.producer_id)
        last = self.last_epoch(transactional_id) if last_epoch is None else last_epoch

        def committed(now: Now) -> None:
            self._last_epochs[transactional_id] = after.producer, last
            written = self.transactions.committed(transactional_id)
            if written is not None:
                self._entered(transactional_id, written, now)

        return Outcome(response, [record_of(transactional_id, after, self.transaction_version())], committed=committed)

    def forget(self, transactional_id: str) -> None:
        """What only the memory has of a transactional id that expired."""
        self._last_epochs.pop(transactional_id, None)

    def _entered(self, transactional_id: str, transaction: Transaction, now: Now) -> None:
        if transaction.state.prepared:
            self.effects.markers_due(MarkersDue(transactional_id, transaction))
        elif transaction.state is TransactionState.ONGOING:
            timeouts.watch(self, now, transactional_id)
        else:
            expiration.watch(self, now)
