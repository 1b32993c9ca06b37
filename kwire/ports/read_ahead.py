"""Readers that go through a file from front to back: how far ahead of them the disk is to be read.

The system does that too, of itself, in the call that comes near the end of what it has read: often sendfile, on the
event loop, which then waits for memory and for the disk's queue (tens of ms where `read_ahead_kb` is some MB). So it
is told not to, and a worker thread asks for what comes next.

    slice asked for       |------|                 unknown to all: it alone is read
    the next              .......|------|~~~~~~~~~~~~~|         a stream begins: twice its size is read ahead
    the one after that    ..............|------|~~~~~~~~~~~~~|  less than its size is left ahead: more is asked for
"""

from __future__ import annotations

AHEAD = 2
"""Slices."""

_MOST_STREAMS = 8
"""Of one file. Whoever reads on when his was forgotten begins anew."""


class ReadAhead:
    """The streams of one file; positions and sizes are bytes. For any thread: at worst a range is asked for twice."""

    __slots__ = ("_reached",)

    def __init__(self) -> None:
        self._reached: tuple[int, ...] = ()
        """The ends (exclusive) of what was asked for, those that were used last at the end."""

    def is_due(self, position: int, size: int) -> bool:
        """Whether who reads this range is in a stream of which less than `size` is left ahead."""
        return self._stream(position, size) is not None

    def next(self, position: int, size: int) -> tuple[int, int]:
        """The range (start, end) to ask for before this one is read: its end may lie behind the file's."""
        end = position + size
        reached = self._stream(position, size)
        start, upto = (position, end) if reached is None else (reached, end + AHEAD * size)
        others = [each for each in self._reached if each != reached]
        self._reached = (*others[-_MOST_STREAMS + 1 :], upto)
        return start, upto

    def finish(self, reached: int) -> None:
        """Forgets the stream that got so far: nothing is left to be read ahead of it."""
        self._reached = tuple(each for each in self._reached if each != reached)

    def _stream(self, position: int, size: int) -> int | None:
        far = position + 2 * size
        for reached in self._reached:
            if position <= reached < far:
                return reached
        return None
