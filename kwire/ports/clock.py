"""Time: what o'clock it is for records and checkpoints, and a monotonic clock for deadlines."""

from __future__ import annotations

import time
from typing import Protocol

import trio


class Clock(Protocol):
    """Wall and monotonic time. Waiting itself is Trio's (`trio.move_on_after`), whose clock a simulation replaces."""

    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""


class SystemClock:
    """The machine's own clocks."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)


class TrioClock:
    """Both clocks derived from Trio's current time, which a `trio.testing.MockClock` makes virtual."""

    def __init__(self, epoch_ms: int = 1_700_000_000_000) -> None:
        self._epoch_ms = epoch_ms

    def wall_ms(self) -> int:
        return self._epoch_ms + int(trio.current_time() * 1000)

    def monotonic(self) -> float:
        return trio.current_time()
