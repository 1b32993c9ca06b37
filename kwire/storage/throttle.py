"""Letting bytes pass at a rate."""

from __future__ import annotations

from collections.abc import Callable

import trio

from kwire.ports.clock import Clock

_LEAST_WAIT_S = 0.000_001
_RATE_LOOK_S = 1.0
"""The longest that is waited without a look at the rate, which may change meanwhile."""


class Throttle:
    """Lets bytes pass at a rate (bytes a second): 0 lets none pass, a negative one all, as with Apache Kafka."""

    def __init__(self, clock: Clock, rate: Callable[[], float]) -> None:
        self._clock = clock
        self._rate = rate
        self._ahead = 0.0
        """Bytes that have passed and would not have yet at that rate."""
        self._seen = 0.0
        """When they were counted."""

    async def __call__(self, size: int) -> None:
        """Returns when the bytes that have passed, with these `size`, are no more than may have."""
        self._count()
        self._ahead += size
        while True:
            wait = self._count()
            if wait <= 0:
                return
            await trio.sleep(min(wait, _RATE_LOOK_S))

    def _count(self) -> float:
        """How long (seconds) nothing may pass."""
        now, rate = self._clock.monotonic(), self._rate()
        passed, self._seen = (now - self._seen) * rate, now
        self._ahead = max(0.0, self._ahead - passed) if rate >= 0 else 0.0
        if not self._ahead:
            return 0.0
        wait = self._ahead / rate if rate else float("inf")
        return wait if wait > _LEAST_WAIT_S else 0.0
