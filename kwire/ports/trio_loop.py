"""What of Trio's event loop has to be known to serve while it would wait (`crowd.py`), and is not told by its API."""

from __future__ import annotations

from collections.abc import Callable, Sized
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


def trio_loop() -> TrioLoop | None:
    """None where this version of Trio has not what is looked for, or looks after files without epoll."""
    try:
        core: Any = trio._core
        runner = core._run.GLOBAL_RUN_CONTEXT.runner
        files = runner.io_manager
        return TrioLoop(files._epoll.fileno(), runner.runq, files.force_wakeup)
    except AttributeError:
        return None
