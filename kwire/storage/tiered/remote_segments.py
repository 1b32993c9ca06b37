"""What lies in remote storage of one partition: pure bookkeeping, by the records of `__remote_log_metadata`.

A partition may have copies that are no part of its history: of a leader that lost an unclean election, or twice the
same offsets after a crash. So a look-up goes by the log's leader epochs: a segment counts where the history has, at
each of its offsets, the leader epoch that the segment has there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from kwire.storage.tiered.remote_segment import RemoteSegment, SegmentState

Epochs = Sequence[tuple[int, int]]
"""A log's history: (leader epoch, its first offset), ascending."""


class RemoteSegments:
    """The copies of one partition's segments."""

    __slots__ = ("_by_id", "_finished", "_reach", "_sized")

    def __init__(self) -> None:
        self._by_id: dict[bytes, RemoteSegment] = {}
        self._finished: list[tuple[int, bytes]] = []
        """(start offset, id) of those that can be read, ascending."""
        self._reach: list[int] | None = None
        """Up to what offset each of these or one before it reaches; None while that is to be found anew."""
        self._sized: tuple[tuple[tuple[int, int], ...], int] | None = None
        """A history, and the bytes that are part of it; None likewise."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[RemoteSegment]:
        """All in whatever state, by start offset."""
        return iter(sorted(self._by_id.values(), key=lambda segment: (segment.start_offset, segment.event_ms)))

    def in_any_order(self) -> Iterable[RemoteSegment]:
        """All in whatever state."""
        return self._by_id.values()

    def get(self, segment_id: bytes) -> RemoteSegment | None:
        return self._by_id.get(segment_id)

    def add(self, segment: RemoteSegment) -> bool:
        """A copy begins. False, and nothing happens, where the id is known: a record that came twice."""
        if segment.id in self._by_id or segment.state is not SegmentState.COPY_SEGMENT_STARTED:
            return False
        self._by_id[segment.id] = segment
        return True

    def update(self, segment_id: bytes, state: SegmentState, event_ms: int, broker_id: int) -> bool:
        """A copy goes into another state. False, and nothing happens, where it cannot: it is unknown, or further on.

        So a leader that was deposed while it copied cannot finish what its successor has begun to delete.
        """
        segment = self._by_id.get(segment_id)
        if segment is None or not segment.can_become(state):
            return False
        place = (segment.start_offset, segment_id)
        self._reach = self._sized = None
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            self._finished.remove(place)
        if state is SegmentState.DELETE_SEGMENT_FINISHED:
            del self._by_id[segment_id]
            return True
        self._by_id[segment_id] = replace(segment, state=state, event_ms=event_ms, broker_id=broker_id)
        if state is SegmentState.COPY_SEGMENT_FINISHED:
            insort(self._finished, place)
        return True

    def readable(self, epochs: Epochs, from_offset: int = 0) -> Iterator[RemoteSegment]:
        """Those of the history that have offsets at or after `from_offset`, by start offset.

        What changes while it is gone through may be left out or not.
        """
        # None before the first of these reaches so far.
        for _, segment_id in self._finished[bisect_left(self._reaches(), from_offset) :]:
            segment = self._by_id.get(segment_id)
            if segment is not None and segment.end_offset >= from_offset and in_history(segment, epochs):
                yield segment

    def find(self, offset: int, epochs: Epochs) -> RemoteSegment | None:
        """The one that has `offset` in its range; of several the one that reaches farthest."""
        reach = self._reaches()
        best = None
        for number in range(bisect_left(self._finished, (offset + 1, b"")) - 1, -1, -1):
            if reach[number] < (offset if best is None else best.end_offset + 1):
                break
            segment = self._by_id[self._finished[number][1]]
            wanted = segment.end_offset >= offset and (best is None or segment.end_offset > best.end_offset)
            if wanted and in_history(segment, epochs):
                best = segment
        return best

    def next_from(self, offset: int, epochs: Epochs) -> RemoteSegment | None:
        """The one that has `offset` in its range, else the first one behind it."""
        return self.find(offset, epochs) or next(self.readable(epochs, offset), None)

    def _reaches(self) -> list[int]:
        if self._reach is None:
            self._reach = list(accumulate((self._by_id[found].end_offset for _, found in self._finished), max))
        return self._reach

    def history_before(self, epochs: Epochs, from_offset: int) -> list[tuple[int, int]]:
        """What the copies tell of the history before the first offset that it knows, back to `from_offset`.

        For a log that lost its leader epochs with its disk, or with power. From one segment to the one before it, of
        several that with the highest leader epoch that may have come before.
        """
        if not epochs:
            return []
        earlier: list[tuple[int, int]] = []
        latest, begins = epochs[0]
        while begins > from_offset:
            before = [
                segment
                for segment in map(self._by_id.__getitem__, (segment_id for _, segment_id in self._finished))
                if segment.start_offset < begins <= segment.end_offset + 1 and _epochs_before(segment, begins, latest)
            ]
            if not before:
                break
            chosen = max(before, key=lambda segment: (_epochs_before(segment, begins, latest)[-1], segment.event_ms))
            part = _epochs_before(chosen, begins, latest)
            if earlier and earlier[0][0] == part[-1][0]:
                earlier.pop(0)
            earlier = [*part, *earlier]
            latest, begins = part[0]
        return earlier

    def highest_offset(self, epochs: Epochs) -> int:
        """The greatest offset (inclusive) of the history that can be read here; -1 where there is none."""
        highest, reach = -1, self._reaches()
        for number in range(len(reach) - 1, -1, -1):
            if reach[number] <= highest:
                break
            segment = self._by_id[self._finished[number][1]]
            if segment.end_offset > highest and in_history(segment, epochs):
                highest = segment.end_offset
        return highest

    def size(self, epochs: Epochs) -> int:
        """Bytes of the .log objects that are part of the history."""
        history = tuple(epochs)
        if self._sized is None or self._sized[0] != history:
            self._sized = history, sum(segment.size for segment in self.readable(epochs))
        return self._sized[1]


def in_history(segment: RemoteSegment, epochs: Epochs) -> bool:
    """Whether the history has the segment's leader epochs at its offsets, as far as it still knows of them."""
    if not epochs:
        return False
    ends = [start for _, start in epochs[1:]]
    for number, (epoch, start) in enumerate(segment.epochs):
        last = segment.epochs[number + 1][1] - 1 if number + 1 < len(segment.epochs) else segment.end_offset
        first = max(start, epochs[0][1])  # what is before the history's beginning it has forgotten
        if first <= last and (_epoch_at(first, ends, epochs) != epoch or _epoch_at(last, ends, epochs) != epoch):
            return False
    return segment.end_offset >= epochs[0][1]


def _epochs_before(segment: RemoteSegment, offset: int, latest: int) -> list[tuple[int, int]]:
    """The segment's epochs before `offset`; none where one of them came after the epoch `latest`."""
    part = [entry for entry in segment.epochs if entry[1] < offset]
    return part if part and part[-1][0] <= latest else []


def _epoch_at(offset: int, ends: Sequence[int], epochs: Epochs) -> int:
    return epochs[bisect_right(ends, offset)][0]


def epochs_within(epochs: Iterable[tuple[int, int]], start_offset: int, end_offset: int) -> list[tuple[int, int]]:
    """The part of a history for [start_offset, end_offset): the epoch in which it begins begins there."""
    part: list[tuple[int, int]] = []
    for epoch, start in epochs:
        if start >= end_offset:
            break
        if start <= start_offset:
            part = [(epoch, start_offset)]
        else:
            part.append((epoch, start))
    return part
