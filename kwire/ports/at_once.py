"""Work that is done at once, without a task of its own, as long as it need not wait.

The pass of Trio's loop that wakes a task takes some 40 Python calls, a small request all in all 60. Most requests wait
for nothing: whoever receives them runs the coroutine that handles them himself, one `step`, and mostly that is all.
What has to wait says so:

    await Signal().wait()    the coroutine stands still until the signal is set, which tells whoever runs it
    await give_way()         others are to have their turn before it goes on
    await needs_task()       what comes next waits by Trio's means: a task has to go on with it (`go_on`)

In a task these are what they seem to be: the first waits, the second is a checkpoint, the third does nothing. So the
same code runs either way, if `needs_task` stands before whatever waits by Trio's means. (Worker threads have it:
`executor`.)
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from enum import Enum
from typing import Any, Final, Generic, TypeVar

import trio

from kwire.ports.stepping import HERE

T = TypeVar("T")


class Stop(Enum):
    """What a coroutine stops with that stands still for no signal."""

    NEEDS_TASK = "needs task"
    """It cannot go on without a task."""
    GIVES_WAY = "gives way"
    """It can go on, but not before others had their turn."""


NEEDS_TASK: Final = Stop.NEEDS_TASK
GIVES_WAY: Final = Stop.GIVES_WAY


class Signal:
    """Set once; one coroutine waits for it at most."""

    __slots__ = ("is_set", "on_set")

    def __init__(self) -> None:
        self.is_set = False
        self.on_set: Callable[[], None] | None = None
        """Called when it is set, which must not raise, and neither wait nor `step`. For whoever runs what waits."""

    def set(self) -> None:
        self.is_set = True
        on_set, self.on_set = self.on_set, None
        if on_set is not None:
            on_set()

    async def wait(self) -> None:
        """Returns when it is set."""
        while not self.is_set:
            if HERE.stepping:
                await _Stopping(self)
            else:
                event = trio.Event()
                self.on_set = event.set
                await event.wait()


Reason = Signal | Stop
"""What a coroutine stands still for."""


async def give_way() -> None:
    """Lets others have their turn."""
    if HERE.stepping:
        await _Stopping(GIVES_WAY)
    else:
        await trio.lowlevel.checkpoint()


async def needs_task() -> None:
    """What comes after it is done in a task."""
    if HERE.stepping:
        await _Stopping(NEEDS_TASK)


def step(work: Coroutine[Any, Any, T]) -> Reason:
    """Runs a coroutine, or goes on with one that stood still, until it ends or has to wait; returns what for.

    StopIteration, with the result as its value, tells that it has ended; what it raises comes through. Where it waits
    for something else, `needs_task` is missing: outside of tasks most of Trio's means raise RuntimeError in it by
    themselves. Where there is a task that happens to run this, which would have been woken, or the coroutine stops all
    the same, `step` raises RuntimeError: the coroutine is closed, and what it waited for is taken back, as far as it
    can be (events, locks, sleeps; not nurseries and threads).
    """
    HERE.stepping = True
    try:
        reason = work.send(None)
    finally:
        HERE.stepping = False
    if reason.__class__ is not Stop and not isinstance(reason, Signal):
        abort = getattr(reason, "abort_func", None)  # as of `trio.lowlevel.wait_task_rescheduled`
        if abort is not None:
            abort(lambda: None)
        work.close()
        raise RuntimeError(f"{work} waited, but not in a task: needs_task() is missing before that")
    return reason


async def go_on(work: Coroutine[Any, Any, T]) -> T:
    """To be awaited by a task: goes on with a coroutine that stood still after a `step`, to its end."""
    return await _GoingOn(work)


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Awaits a coroutine that is not to be cancelled with the task that awaits it.

    Without a task there is none to be cancelled: a cancel scope, which takes several calls, is entered by a task alone.
    """
    result: T
    while HERE.stepping:
        try:
            reason: Any = work.send(None)  # what it must not stop with is for `step` to see to
            await _Stopping(reason)
        except StopIteration as ended:
            result = ended.value
            return result
        except GeneratorExit:
            work.close()
            raise
    with trio.CancelScope(shield=True):
        result = await _GoingOn(work)
    return result


class _GoingOn(Generic[T]):
    """A coroutine that was begun may not be awaited as such."""

    __slots__ = ("_work",)

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()


class _Stopping:
    """Awaited, it stands still, once, and says what for."""

    __slots__ = ("_reason",)

    def __init__(self, reason: Any) -> None:
        self._reason = reason

    def __await__(self) -> Generator[Any, None, None]:
        yield self._reason
