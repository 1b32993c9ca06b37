"""Worker threads that wait until they are let go."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked


class HeldExecutor:
    """Worker threads of which each call waits until it is let go."""

    def __init__(self) -> None:
        self.waiting: list[trio.Event] = []
        self.held = False

    async def run(self, function, *arguments):
        if self.held:
            gate = trio.Event()
            self.waiting.append(gate)
            await gate.wait()
        return function(*arguments)

    async def let_go(self) -> None:
        """Lets the oldest call run, and what follows from it happen."""
        self.waiting.pop(0).set()
        await wait_all_tasks_blocked()
