"""Alarms: being called at a time, for many who wait for something else and hardly ever for so long.

A cancel scope of Trio's with a deadline takes some fifty Python calls, an alarm that is set and taken back three: one
task sleeps for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf

import trio

from kwire.ports.clock import Clock

_KEPT = 64
"""So many alarms that were taken back may stay, and as many as there are others, before they are cleared away."""


class Alarm:
    """One that is set."""

    __slots__ = ("_alarms", "_ring")

    def __init__(self, alarms: Alarms, ring: Callable[[], None]) -> None:
        self._alarms = alarms
        self._ring: Callable[[], None] | None = ring

    @property
    def is_set(self) -> bool:
        """Whether it has neither rung nor been taken back."""
        return self._ring is not None

    def cancel(self) -> None:
        """Takes it back, unless it has rung."""
        if self._ring is not None:
            self._ring = None
            self._alarms.pending -= 1

    def ring(self) -> None:
        """Calls who set it, unless it was taken back."""
        ring = self._ring
        if ring is not None:
            self.cancel()
            ring()


class Alarms:
    """Those of one event loop; they ring as long as `run` runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.pending = 0
        """How many are set."""
        self._heap: list[tuple[float, int, Alarm]] = []
        self._numbers = count()
        self._sleeps_until = -inf
        self._earlier = trio.Event()

    def at(self, deadline: float, ring: Callable[[], None]) -> Alarm:
        """Has `ring` called, which must neither raise nor wait, when `clock.monotonic()` comes to `deadline` (s)."""
        heap = self._heap
        if len(heap) > 2 * self.pending + _KEPT:
            heap[:] = [entry for entry in heap if entry[2].is_set]
            heapify(heap)
        self.pending += 1
        alarm = Alarm(self, ring)
        heappush(heap, (deadline, next(self._numbers), alarm))
        if deadline < self._sleeps_until:
            self._earlier.set()
        return alarm

    async def run(self) -> None:
        """Until cancelled."""
        heap, clock = self._heap, self._clock
        while True:
            now = clock.monotonic()
            while heap and (heap[0][0] <= now or not heap[0][2].is_set):
                heappop(heap)[2].ring()
            self._sleeps_until = heap[0][0] if heap else inf
            with trio.move_on_after(max(self._sleeps_until - clock.monotonic(), 0)):
                await self._earlier.wait()
            self._sleeps_until = -inf  # who sets one now need not wake who is awake
            self._earlier = trio.Event()
