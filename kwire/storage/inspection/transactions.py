"""Producers and transactions as the batches show them, compared with .txnindex and with the producers' snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kwire.protocol.records.control import read_end_txn_marker
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import BatchHeader
from kwire.storage.producer_entry import ProducerEntry
from kwire.storage.transaction_index import ENTRY_SIZE, AbortedTransaction

Tell = Callable[[int | None, str], None]


@dataclass(slots=True)
class _Producer:
    last_sequence: int = -1
    last_offset: int = -1
    """Of its last data batch."""
    first_offset: int = -1
    """Of the first data of its open transaction."""


class ProducersCheck:
    """What the batches of a log say of its producers, from its first batch on."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def batch(
        self, header: BatchHeader, batch: memoryview, listed: Mapping[int, AbortedTransaction] | None, known_from: int
    ) -> str | None:
        """Counts in a batch with a producer id; what is wrong with it.

        `listed` are the aborted transactions that .txnindex has, by the offsets of their markers; None where that file
        need not be right. Below `known_from`, records of a transaction may be gone.
        """
        producer = self._producers.setdefault(header.producer_id, _Producer())
        if not header.control:
            producer.last_sequence, producer.last_offset = header.last_sequence, header.last_offset
            if header.transactional and header.count and producer.first_offset < 0:
                producer.first_offset = header.base_offset
            return None
        try:
            marker = read_end_txn_marker(batch)
        except CorruptBatchError as error:
            return error.message
        first_offset, producer.first_offset = producer.first_offset, -1
        if marker is None or marker.commit or listed is None or first_offset < 0 or header.base_offset < known_from:
            return None
        found = listed.get(header.base_offset)
        if found is None or found.producer_id != header.producer_id:
            return f"the abort of producer {header.producer_id}'s transaction is not in the .txnindex"
        if found.first_offset != first_offset:
            return f"the .txnindex has the transaction begin at {found.first_offset}, and it begins at {first_offset}"
        stable = min(
            (other.first_offset for other in self._producers.values() if other.first_offset >= 0), default=None
        )
        if stable is None:
            stable = header.next_offset
        if known_from == 0 and found.last_stable_offset != stable:
            return f"the .txnindex says that the last stable offset was {found.last_stable_offset}, not {stable}"
        return None

    def snapshot_fault(self, entries: list[ProducerEntry], known_from: int) -> str | None:
        """What is wrong with a snapshot as of here; what it says of batches below `known_from` cannot be told."""
        for entry in entries:
            if entry.last_offset < known_from:
                continue
            seen = self._producers.get(entry.producer_id)
            if seen is None or (seen.last_offset, seen.last_sequence) != (entry.last_offset, entry.last_sequence):
                says = f"sequence {entry.last_sequence} at offset {entry.last_offset}"
                has = f"sequence {seen.last_sequence} at offset {seen.last_offset}" if seen is not None else "nothing"
                return f"it says that producer {entry.producer_id} wrote {says} last, and the log has {has}"
        return None


def check_order(transactions: list[AbortedTransaction], markers: set[int], tell: Tell) -> None:
    """Compares a whole .txnindex with the offsets of the segment's abort markers."""
    for number, transaction in enumerate(transactions):
        if transaction.first_offset > transaction.last_offset:
            tell(number * ENTRY_SIZE, f"a transaction that begins at {transaction.first_offset} after its end")
        elif transaction.last_offset not in markers:
            tell(number * ENTRY_SIZE, f"there is no abort marker at offset {transaction.last_offset}")
