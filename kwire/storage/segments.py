"""The segments of a log in offset order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from kwire.storage.segment import Segment

_BASE: Final = attrgetter("base_offset")


class Segments:
    """At least one segment once the log is loaded; the last one takes the appends."""

    __slots__ = ("_sealed_bytes", "_segments", "active", "version")

    active: Segment
    """The last segment."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._segments: tuple[Segment, ...] = ()
        self._sealed_bytes = 0
        self.version = 0
        """Counts removals: who holds on to a segment and waits, must look afterwards whether it is still the log's."""
        self._take(tuple(segments))

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
        replaced = self._segments and self.active.base_offset == segment.base_offset
        self._take((*(self._segments[:-1] if replaced else self._segments), segment))

    def remove(self, gone: Iterable[Segment]) -> None:
        self.replace(gone, ())

    def replace(self, gone: Iterable[Segment], new: Iterable[Segment]) -> None:
        """Takes segments out, and others in their places."""
        removed = set(map(id, gone))
        left = [segment for segment in self._segments if id(segment) not in removed]
        self.version += 1
        self._take(tuple(sorted([*left, *new], key=_BASE)))

    def resized(self) -> None:
        """To be told of when the size of a sealed segment has changed."""
        self._take(self._segments)

    def floor_number(self, offset: int) -> int:
        """The number of the last segment that begins at or before `offset`; -1 where all begin after it."""
        return bisect_right(self._segments, offset, key=_BASE) - 1

    def from_offset(self, offset: int) -> list[Segment]:
        """Those that may hold `offset` or greater ones."""
        return list(self._segments[max(0, self.floor_number(offset)) :])

    def from_base(self, base_offset: int) -> list[Segment]:
        """Those that begin at or after `base_offset`."""
        return list(self._segments[bisect_left(self._segments, base_offset, key=_BASE) :])

    def end_of(self, number: int, log_end_offset: int) -> int:
        """Where a segment's range of offsets ends (exclusive)."""
        return self._segments[number + 1].base_offset if number + 1 < len(self._segments) else log_end_offset

    def _take(self, segments: tuple[Segment, ...]) -> None:
        self._segments = segments
        if segments:
            self.active = segments[-1]
        self._sealed_bytes = sum(segment.size for segment in segments[:-1])
