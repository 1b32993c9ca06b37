"""The segments of a log in offset order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from kwire.storage.segment import Segment


class Segments:
    """At least one segment once the log is loaded; the last one takes the appends."""

    __slots__ = ("_bases", "_sealed_bytes", "_segments", "active", "version")

    active: Segment
    """The last segment."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments: list[Segment] = []
        self._bases: list[int] = []
        self._sealed_bytes = 0
        self.version = 0
        """Counts removals: who holds on to a segment and waits, must look afterwards whether it is still the log's."""
        for segment in segments:
            self.add(segment)

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, number: int) -> Segment:
        return self._segments[number]

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size(self) -> int:
        """Bytes of all .log files."""
        return self._sealed_bytes + self.active.size

    def add(self, segment: Segment) -> None:
        """Appends one that begins after all others, or at the same offset as the last, which it replaces."""
        if self._bases and self._bases[-1] == segment.base_offset:
            self._segments[-1] = segment
        else:
            self._segments.append(segment)
            self._bases.append(segment.base_offset)
        self._changed()

    def remove(self, gone: Iterable[Segment]) -> None:
        self.replace(gone, ())

    def replace(self, gone: Iterable[Segment], new: Iterable[Segment]) -> None:
        """Takes segments out, and others in their places."""
        removed = set(map(id, gone))
        left = [segment for segment in self._segments if id(segment) not in removed]
        self._segments = sorted([*left, *new], key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._segments]
        self.version += 1
        self._changed()

    def floor_number(self, offset: int) -> int:
        """The number of the last segment that begins at or before `offset`; -1 where all begin after it."""
        return bisect_right(self._bases, offset) - 1

    def from_offset(self, offset: int) -> list[Segment]:
        """Those that may hold `offset` or greater ones."""
        return self._segments[max(0, self.floor_number(offset)) :]

    def from_base(self, base_offset: int) -> list[Segment]:
        """Those that begin at or after `base_offset`."""
        return self._segments[bisect_left(self._bases, base_offset) :]

    def end_of(self, number: int, log_end_offset: int) -> int:
        """Where a segment's range of offsets ends (exclusive)."""
        return self._bases[number + 1] if number + 1 < len(self._bases) else log_end_offset

    def _changed(self) -> None:
        if self._segments:
            self.active = self._segments[-1]
        self._sealed_bytes = sum(segment.size for segment in self._segments[:-1])
