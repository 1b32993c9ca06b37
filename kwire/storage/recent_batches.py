"""Where the last batches of the active segment lie, so that who reads at the tail is served from memory."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final

_KEPT: Final = 256


class RecentBatches:
    """The ends of the last batches: offset and position of what comes after each."""

    __slots__ = ("_next_offsets", "_positions", "_start_offset")

    def __init__(self, start_offset: int) -> None:
        """Nothing is known before `start_offset`, where the next batch will be added."""
        self._start_offset = start_offset
        # Made with the first batch: of thousands of logs most take none for long.
        self._next_offsets: array[int] | tuple[int, ...] = ()
        self._positions: array[int] | tuple[int, ...] = ()

    def add(self, next_offset: int, position: int) -> None:
        """The batch that begins at `position` ends before `next_offset`."""
        next_offsets, positions = self._next_offsets, self._positions
        if isinstance(next_offsets, tuple) or isinstance(positions, tuple):
            self._next_offsets, self._positions = array("q", (next_offset,)), array("q", (position,))
            return
        next_offsets.append(next_offset)
        positions.append(position)
        if len(positions) > 2 * _KEPT:
            self._start_offset = next_offsets[_KEPT - 1]
            del next_offsets[:_KEPT]
            del positions[:_KEPT]

    def find(self, offset: int, end_position: int) -> tuple[int, int] | None:
        """(position, size) of the first batch that ends after `offset`; None where it is not among these."""
        if offset < self._start_offset:
            return None
        found = bisect_right(self._next_offsets, offset)
        positions = self._positions
        known = len(positions)
        if found >= known:
            return None
        position = positions[found]
        return position, (positions[found + 1] if found + 1 < known else end_position) - position
