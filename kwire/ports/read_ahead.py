"""Readers that go through a file from front to back: how far ahead of them the disk is to be read.

The system does that too, of itself, in the call that comes near the end of what it has read: often sendfile, on the
event loop, which then waits for memory and for the disk's queue (tens of ms where `read_ahead_kb` is some MB). So it
is told not to for the descriptor that is sent from, and a thread that nobody waits for reads what comes next, by
another descriptor.

    slice asked for       |------|                 nobody comes from there: it alone is read
    the next              .......|------|~~~~~~~~~~~~~|         somebody reads on: so much is read ahead
    the one after that    ..............|------|~~~~~~~~~~~~~|  less than half of it is left ahead: more is read
"""

from __future__ import annotations

_AHEAD = 2
"""Slices,"""
_LEAST_AHEAD = 512 * 1024
"""but at least so many bytes: who reads little at a time need not wait for the disk each time,"""
_MOST_AHEAD = 8 * 1024 * 1024
"""and at most so many."""

_MOST_STREAMS = 8
"""Of one file. Whoever reads on when his was forgotten begins anew."""


class ReadAhead:
    """The streams of one file; positions and sizes are bytes.

    For any thread: at worst a range is asked for twice, or a stream begins anew.
    """

    __slots__ = ("_reached",)

    def __init__(self) -> None:
        self._reached: tuple[int, ...] = ()
        """The ends (exclusive) of what was asked for, those that were used last at the end."""

    def is_due(self, position: int, size: int) -> bool:
        """Whether who reads this range is in a stream of which too little is left ahead."""
        reached = self._stream(position, size)
        return reached is not None and reached < position + size + _ahead(size) // 2

    def next(self, position: int, size: int) -> tuple[int, int]:
        """What is to be asked for besides this range when it is read: from where, and up to where (exclusive), which
        may lie behind the file's end.

        Nothing, from the range's end, where nobody comes from there.
        """
        end = position + size
        reached = self._stream(position, size)
        if reached is None:
            upto = end
        elif reached < end + _ahead(size) // 2:
            upto = end + _ahead(size)
        else:
            upto = reached
        others = [each for each in self._reached if each not in (reached, upto)]
        self._reached = (*others[-_MOST_STREAMS + 1 :], upto)
        return max(end, reached or 0), upto

    def finish(self, reached: int) -> None:
        """Forgets the stream that got so far: nothing is left to be read ahead of it."""
        self._reached = tuple(each for each in self._reached if each != reached)

    def _stream(self, position: int, size: int) -> int | None:
        """How far was asked for ahead of who reads this range; None where nobody comes from there."""
        far = position + size + _ahead(size)
        for reached in self._reached:
            if position <= reached <= far:
                return reached
        return None


def _ahead(size: int) -> int:
    return min(max(_AHEAD * size, _LEAST_AHEAD), _MOST_AHEAD)
