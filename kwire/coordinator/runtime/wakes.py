"""Wakes who waits for an answer, a few at a time.

A rebalance answers all members of a group in one moment. If their tasks all ran in one pass of the event loop, a
thousand answers would be encoded and sent before anybody else's produce or fetch were looked at.
"""

from __future__ import annotations

from collections import deque

import trio

AT_ONCE = 16
"""So many tasks are woken in one pass of the event loop; each takes about a tenth of a millisecond."""

_PASS_SECONDS = 0.002
"""After so long the event loop is taken to have made a pass."""


class Wakes:
    """Sets events: at once where few are to be set, else in their order, while `run` runs."""

    def __init__(self) -> None:
        self._waiting: deque[trio.Event] = deque()
        self._some = trio.Event()
        self._running = False
        self._left = 0
        self._pass_ends = float("-inf")

    def wake(self, event: trio.Event) -> None:
        if not self._running or (not self._waiting and self._has_room()):
            event.set()
        else:
            self._waiting.append(event)
            self._some.set()

    def _has_room(self) -> bool:
        now = trio.current_time()
        if now >= self._pass_ends:
            self._pass_ends = now + _PASS_SECONDS
            self._left = AT_ONCE
        self._left -= 1
        return self._left >= 0

    async def run(self) -> None:
        """Sets what could not be set at once, until cancelled; then all that is left."""
        self._running = True
        try:
            while True:
                await self._some.wait()
                while self._waiting:
                    for _ in range(min(AT_ONCE, len(self._waiting))):
                        self._waiting.popleft().set()
                    await trio.lowlevel.checkpoint()
                self._some = trio.Event()
        finally:
            self._running = False
            for event in self._waiting:
                event.set()
            self._waiting.clear()
