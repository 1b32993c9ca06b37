"""What of Trio's event loop has to be known to serve while it would wait (`crowd.py`), and is not told by its API."""

from __future__ import annotations

from collections.abc import Callable, Sized
from math import inf
from typing import Any, NamedTuple

import trio


class TrioLoop(NamedTuple):
    """The event loop of this thread."""

    descriptor: int
    """Its epoll: readable as soon as one of Trio's tasks can go on with what it waits for outside of the process."""
    runnable: Sized
    """The tasks that are to run next: always the loop's own."""
    wake: Callable[[], None]
    """Has the loop's next wait return at once."""
    idle_is_awaited: Callable[[], bool]
    """Whether a wait that ends without anything having come means something: to `trio.testing.wait_all_tasks_blocked`,
    or to a clock that jumps then."""


def trio_loop() -> TrioLoop | None:
    """None where this version of Trio has not what is looked for, looks after files without epoll, or is the guest of
    another event loop, which must not be kept waiting."""
    core: Any = trio._core

    def idle_is_awaited() -> bool:
        return bool(runner.waiting_for_idle) or runner.clock_autojump_threshold < inf

    try:
        runner = core._run.GLOBAL_RUN_CONTEXT.runner
        if runner.is_guest:
            return None
        idle_is_awaited()
        files = runner.io_manager
        return TrioLoop(files._epoll.fileno(), runner.runq, files.force_wakeup, idle_is_awaited)
    except AttributeError:
        return None
