"""Long work lets others run, short work does not bother."""

from __future__ import annotations

import trio

from kwire.ports.clock import Clock
from kwire.ports.turns import TURN_SECONDS, Turn


class Ticking(Clock):
    """Goes on by a fixed time whenever it is looked at."""

    def __init__(self, tick: float) -> None:
        self._tick = tick
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += self._tick
        return self._now


async def seen_by_another(tick: float) -> set[int]:
    """How many of 1,000 things were done whenever another task had its turn."""
    done = 0
    seen = set()

    async def other() -> None:
        while True:
            seen.add(done)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await trio.lowlevel.checkpoint()
        turn = Turn(Ticking(tick))
        for _ in range(1000):
            done += 1
            await turn.share()
        nursery.cancel_scope.cancel()
    return seen


async def test_long_work_is_done_in_turns() -> None:
    assert len(await seen_by_another(TURN_SECONDS / 10)) > 50


async def test_short_work_is_done_at_once() -> None:
    assert await seen_by_another(0) <= {0, 1000}
