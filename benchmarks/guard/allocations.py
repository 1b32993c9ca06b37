"""What is allocated while a thread works, as far as Python can see it."""

from __future__ import annotations

import sys
import tracemalloc
from types import FrameType

LARGE = 4096
"""Bytes: a copy of a batch is larger, an object of Python's smaller."""


class Allocations:
    """Looked at before and after each call of the thread that began it, so that what lived for less is seen, too: each
    time the most that memory held since the last time counts, once. What other threads allocate meanwhile counts too,
    what C allocates by itself does not.

    A copy is an allocation, unless it goes to memory that is there already.
    """

    def __init__(self) -> None:
        self.large = 0
        """How many times LARGE bytes or more were allocated at once."""
        self.large_bytes = 0
        self.small_bytes = 0
        """All else, and what looking takes: a constant for each call."""
        self.most = 0
        """Bytes that were held at once, beyond what was there before."""

    def begin(self) -> None:
        """Begins to look; what the thread calls has no other profiler until `end`."""
        traced, reset_peak = tracemalloc.get_traced_memory, tracemalloc.reset_peak

        def looked(frame: FrameType, event: str, argument: object) -> None:
            nonlocal held
            _, most = traced()
            taken = most - held
            if taken >= LARGE:
                self.large += 1
                self.large_bytes += taken
            else:
                self.small_bytes += taken
            self.most = max(self.most, most - before)
            reset_peak()
            held, _ = traced()

        tracemalloc.start()
        before = held = traced()[0]
        sys.setprofile(looked)

    def end(self) -> None:
        sys.setprofile(None)
        tracemalloc.stop()
