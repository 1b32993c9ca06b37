"""What the first pass of a cleaning remembers of the records that it saw, so that the second need not look at them.

Two bits a record. Where neither bit of any record of a batch is set the batch stays as it is, and needs no look inside;
where the first one is set for all, nothing of it stays.
"""

from __future__ import annotations

from kwire.storage.cleaning.memory import zeros


class Marks:
    """Of the offsets from `start` on, as far as there is room."""

    __slots__ = ("end", "start", "superseded", "tombstones")

    def __init__(self, start: int, max_bytes: int) -> None:
        each = max_bytes // 2
        self.start = start
        self.end = start + each * 8
        """The first offset that has no marks any more."""
        self.superseded = zeros(each)
        """A bit for each offset, the lowest first: its record has a later one, or has no key."""
        self.tombstones = zeros(each)
        """Likewise: its record has no value."""

    def of(self, first_offset: int, last_offset: int) -> tuple[int, int]:
        """(superseded, tombstones) of a range (inclusive) as bits of ints, the first offset's the lowest."""
        first, last = first_offset - self.start, last_offset - self.start
        low, high, shift = first >> 3, (last >> 3) + 1, first & 7
        mask = (1 << last - first + 1) - 1
        return (
            int.from_bytes(self.superseded[low:high], "little") >> shift & mask,
            int.from_bytes(self.tombstones[low:high], "little") >> shift & mask,
        )
