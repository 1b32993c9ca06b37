"""The aborted transactions of a segment, for consumers that read committed records only.

.txnindex, big endian, 34 bytes an entry, in the order of the abort markers; the file exists once there is one
    version             int16     0
    producer id         int64
    first offset        int64     of the transaction
    last offset         int64     of its abort marker
    last stable offset  int64     of the partition right after the marker
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kwire.storage.sparse_index import CorruptIndex

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0

ENTRY_SIZE = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """One aborted transaction; offsets inclusive, except the last stable offset."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def encode(self) -> bytes:
        return _ENTRY.pack(_VERSION, *self)


def decode_transactions(data: bytes, base_offset: int) -> list[AbortedTransaction]:
    """A file's entries. Raises `CorruptIndex` where they are not those of a segment that begins there."""
    if len(data) % ENTRY_SIZE:
        raise CorruptIndex(f"{len(data)} bytes of aborted transactions are not a multiple of {ENTRY_SIZE}")
    transactions = []
    for version, *entry in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise CorruptIndex(f"version {version} of an aborted transaction is not known")
        transaction = AbortedTransaction(*entry)
        if transaction.last_offset < base_offset:
            raise CorruptIndex(f"{transaction} ended before the segment begins")
        if not 0 <= transaction.first_offset < transaction.last_offset:
            raise CorruptIndex(f"{transaction} ended before it began")
        transactions.append(transaction)
    return transactions


def overlapping(
    transactions: list[AbortedTransaction], first_offset: int, end_offset: int
) -> tuple[list[AbortedTransaction], bool]:
    """Those that a read of [first_offset, end_offset) meets, and whether the next segments have no more of them."""
    found = []
    for transaction in transactions:
        if transaction.last_offset >= first_offset and transaction.first_offset < end_offset:
            found.append(transaction)
        if transaction.last_stable_offset >= end_offset:
            return found, True
    return found, False
