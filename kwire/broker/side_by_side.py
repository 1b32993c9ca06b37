"""What one request asks of several partitions, done at the same time where each waits for a disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio

T = TypeVar("T")


async def side_by_side(tasks: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Awaits all of them together; what they return, in their order. They must not raise."""
    results: list[T | None] = [None] * len(tasks)

    async def run(number: int) -> None:
        results[number] = await tasks[number]()

    async with trio.open_nursery() as nursery:
        for number in range(len(tasks)):
            nursery.start_soon(run, number)
    return results  # type: ignore[return-value]  # each is there when the nursery has ended
