"""From a key to its latest offset, in memory that is known beforehand.

A table with open addressing, 24 bytes a place: the offset plus 1 (0: the place is free), and two hashes of the key of
64 bits each. Hashes instead of keys bound the memory whatever the keys' lengths. They are the interpreter's own
(SipHash), which its process keys with random bytes, and the second one goes over a secret besides: nobody can make up
two keys with the same hashes, of which one would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.protocol.records.header import BatchHeader
from kwire.protocol.records.skim import Skimmed
from kwire.storage.cleaning.marks import Marks
from kwire.storage.cleaning.memory import zeros

BYTES_PER_PLACE = 24
NO_OFFSET = -1

_MARKS_SHARE = 8
"""One byte in so many is for marks, where there are that many records."""


class OffsetMap:
    """Keys may be put until one finds no place. Not for two threads at once."""

    __slots__ = ("_limit", "_places", "_salt", "_size", "_table", "latest_offset", "marks")

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

        False where a key finds no place: it and those after it are not put.
        """
        table, places, salt, marks = self._table, self._places, self._salt, self.marks
        superseded, tombstones, marked_from, marked_to = marks.superseded, marks.tombstones, marks.start, marks.end
        base_offset = header.base_offset
        last = base_offset - 1
        for _, _, _, offset_delta, key, null in records:
            offset = base_offset + offset_delta
            if offset <= last:  # two records with one mark
                marked_to = marks.end = min(marked_to, base_offset)
            last = offset
            if offset < marked_from:
                continue
            if null and offset < marked_to:
                tombstones[offset - marked_from >> 3] |= 1 << (offset - marked_from & 7)
            if key is None:
                before = offset
            else:
                one, two = hash(key), hash(salt + key)
                at = one % places * 3
                while before := table[at]:
                    if table[at + 1] == one and table[at + 2] == two:
                        break
                    at = self._next(at, two)
                else:
                    if self._size >= self._limit:
                        return False
                    self._size += 1
                    table[at + 1] = one
                    table[at + 2] = two
                    table[at] = offset + 1
                    continue
                table[at] = offset + 1
                before -= 1
            if before < marked_to:
                superseded[before - marked_from >> 3] |= 1 << (before - marked_from & 7)
        if last > header.last_offset:
            marks.end = min(marked_to, base_offset)
        return True

    def _next(self, at: int, two: int) -> int:
        """Where to look after `at`.

        A step of each hash's own keeps the ways short when the table is nearly full; the number of places is prime, so
        that any step comes by all of them.
        """
        places = self._places
        return (at // 3 + two % (places - 1) + 1) % places * 3

    def get(self, key: bytes) -> int:
        """The key's latest offset; NO_OFFSET where it has none."""
        table, one = self._table, hash(key)
        at = one % self._places * 3
        if not table[at]:
            return NO_OFFSET
        two = hash(self._salt + key)
        while latest := table[at]:
            if table[at + 1] == one and table[at + 2] == two:
                break
            at = self._next(at, two)
        return latest - 1


def _prime(number: int, step: int) -> int:
    """The nearest prime: from `number` on upwards (step 1), or downwards (-1)."""
    while number > 2 and any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += step
    return number
