"""Of which transactions a cleaner meets batches: whose are aborted, and which markers nobody needs any more.

To be told of all batches in the order of their offsets.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from kwire.protocol.records.control import read_end_txn_marker
from kwire.protocol.records.header import BatchHeader
from kwire.storage.transaction_index import AbortedTransaction


class CleanedTransactions:
    """The transactions that are open at the place to which a cleaner has come."""

    __slots__ = ("_aborted", "_committed", "_kept", "_known")

    def __init__(self) -> None:
        self._known: list[tuple[int, AbortedTransaction]] = []
        # Those begun, by producer id; and whether a batch of them was met.
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committed: set[int] = set()
        self._kept: list[AbortedTransaction] = []

    def add(self, transactions: Iterable[AbortedTransaction]) -> None:
        """Aborted transactions that the next batches may belong to; it does no harm to add one again."""
        for transaction in transactions:
            heappush(self._known, (transaction.first_offset, transaction))

    def take_kept(self) -> list[AbortedTransaction]:
        """Of the markers met since the last time: the aborted transactions of which something was met.

        They are what the cleaned segment's index tells of.
        """
        kept, self._kept = self._kept, []
        return kept

    def _begin_up_to(self, offset: int) -> None:
        while self._known and self._known[0][0] <= offset:
            _, transaction = heappop(self._known)
            self._aborted.setdefault(transaction.producer_id, (transaction, False))

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of records belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.transactional:
            return False
        aborted = self._aborted.get(header.producer_id)
        if aborted is None:
            self._committed.add(header.producer_id)
            return False
        self._aborted[header.producer_id] = aborted[0], True
        return True

    def is_needless(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether a control batch ends a transaction of which nothing is left. Raises CorruptBatchError."""
        self._begin_up_to(header.last_offset)
        marker = read_end_txn_marker(batch)
        if marker is None:  # emptied by an earlier cleaning
            return True
        if marker.commit:
            if header.producer_id not in self._committed:
                return True
            self._committed.discard(header.producer_id)
            return False
        transaction, met = self._aborted.pop(header.producer_id, (None, False))
        if transaction is None or not met:
            return True
        self._kept.append(transaction)
        return False
