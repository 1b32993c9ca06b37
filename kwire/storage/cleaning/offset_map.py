"""From a key to its latest offset, in memory that is known beforehand.

A table with open addressing, 16 bytes a place, in two columns of 64 bits that lie side by side: one hash of the key
(0: the place is free); and its offset, counted from the map's start, above 23 bits of another hash, by which the place
was found, too. That makes more than 100 bits by which keys differ, whatever their lengths. The hashes are the
interpreter's own (SipHash), which its process keys with random bytes, and one of them goes over a secret besides:
nobody can make up two keys that pass for one, of which one would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kwire.protocol.records.header import BatchHeader
from kwire.protocol.records.skim import Skimmed
from kwire.storage.cleaning.marks import Marks
from kwire.storage.cleaning.memory import zeros

BYTES_PER_PLACE: Final = 16

_TAG_BITS: Final = 23
_TAG: Final = (1 << _TAG_BITS) - 1
_OFFSETS: Final = (1 << 63 - _TAG_BITS) - (1 << 32)
"""How many offsets there is room for, but for those of one batch: a million million."""

_MARKS_SHARE: Final = 8
"""One byte in so many is for marks, where there are that many records."""


class OffsetMap:
    """Keys may be put until one finds no place. Not for two threads at once."""

    __slots__ = ("_limit", "_places", "_salt", "_size", "_start", "_table", "latest_offset", "marks")

    def __init__(self, max_bytes: int, max_keys: int, load_factor: float, secret: bytes, start_offset: int = 0) -> None:
        """Takes at most `max_bytes`, less where `max_keys` keys need less. `secret`: random bytes."""
        marks_bytes = min(max_bytes // _MARKS_SHARE, (max_keys + 7) // 8 * 2)
        most = max((max_bytes - marks_bytes) // BYTES_PER_PLACE, 3)
        wanted = int(max_keys / max(load_factor, 0.01)) + 2
        self._places = _prime(most, -1) if wanted >= most else min(_prime(wanted, 1), _prime(most, -1))
        self._limit = min(max(1, int(self._places * load_factor)), self._places - 1)  # a search ends at a free place
        self._table = memoryview(zeros(self._places * BYTES_PER_PLACE)).cast("q")
        self._salt = secret
        self._size = 0
        self._start = start_offset
        self.marks = Marks(start_offset, marks_bytes)
        self.latest_offset = start_offset - 1
        """From `start_offset` up to here (inclusive) the map knows all keys."""

    def __len__(self) -> int:
        return self._size

    @property
    def full(self) -> bool:
        """Whether no other key has a place."""
        return self._size >= self._limit

    def has_marks(self, header: BatchHeader) -> bool:
        """Whether there are marks of all records of the batch, one for each of its offsets."""
        return (
            header.base_offset >= self.marks.start
            and header.last_offset <= self.latest_offset
            and header.last_offset < self.marks.end
            and header.count == header.last_offset_delta + 1
        )

    def put(self, header: BatchHeader, records: Iterable[Skimmed]) -> bool:
        """These are the latest of their keys, but for what is before the start; batches come in order.

        False where a key finds no place: it and those after it are not put, and the latest offset lies right before it.
        """
        table, places, salt, marks = self._table, self._places, self._salt, self.marks
        superseded, tombstones, start, marks_end = marks.superseded, marks.tombstones, marks.start, marks.end
        base_offset = header.base_offset
        if base_offset - start >= _OFFSETS:
            self.latest_offset = base_offset - 1
            return False
        last = base_offset - 1
        for _, _, _, offset_delta, key, null in records:
            offset = base_offset + offset_delta
            if offset <= last:  # two records with one mark
                marks_end = marks.end = min(marks_end, base_offset)
            last = offset
            number = offset - start
            if number < 0:
                continue
            if null and offset < marks_end:
                tombstones[number >> 3] |= 1 << (number & 7)
            if key is None:
                before = number
            else:
                hashed = hash(key)
                check = hash(salt + key) or 1
                at = hashed % places * 2
                tag = hashed >> 40 & _TAG
                while other := table[at]:
                    if other == check and (entry := table[at + 1]) & _TAG == tag:
                        table[at + 1] = number << _TAG_BITS | tag
                        before = entry >> _TAG_BITS
                        break
                    at = (at // 2 + check % (places - 1) + 1) % places * 2
                else:
                    if self._size >= self._limit:
                        self.latest_offset = max(self.latest_offset, min(offset - 1, header.last_offset))
                        return False
                    self._size += 1
                    table[at] = check
                    table[at + 1] = number << _TAG_BITS | tag
                    continue
            if start + before < marks_end:
                superseded[before >> 3] |= 1 << (before & 7)
        if last > header.last_offset:
            marks.end = min(marks_end, base_offset)
        return True

    def latest(self, header: BatchHeader, records: Iterable[Skimmed], tombstones_go: bool = False) -> list[Skimmed]:
        """Those that have a key, and no later record of it; and all that lie beyond the latest offset.

        With `tombstones_go` no tombstones are among the former.
        """
        table, places, salt = self._table, self._places, self._salt
        first, latest_offset = header.base_offset - self._start, self.latest_offset - self._start
        found = []
        for record in records:
            _, _, _, offset_delta, key, null = record
            number = first + offset_delta
            if number <= latest_offset:
                if key is None or (null and tombstones_go):
                    continue
                hashed = hash(key)
                at = hashed % places * 2
                if other := table[at]:
                    check = hash(salt + key) or 1
                    tag = hashed >> 40 & _TAG
                    while other:
                        if other == check and (entry := table[at + 1]) & _TAG == tag:
                            break
                        # A step of each key's own keeps the ways short when the table is nearly full; the number of
                        # places is prime, so that any step comes by all of them.
                        at = (at // 2 + check % (places - 1) + 1) % places * 2
                        other = table[at]
                    if other and entry >> _TAG_BITS > number:
                        continue
            found.append(record)
        return found


def _prime(number: int, step: int) -> int:
    """The nearest prime: from `number` on upwards (step 1), or downwards (-1)."""
    while number > 2 and any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += step
    return number
