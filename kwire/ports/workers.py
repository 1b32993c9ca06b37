"""Work that keeps an interpreter busy, beside the event loop's: in a process of its own, or (memory files) in this one.

    worker = await workers.start(Task, *arguments)         a Task(*arguments), wherever it lives
    result = await worker.call(Task.method, *arguments)    one call at a time

What goes over is pickled: the class and its methods by name, arguments, results and exceptions by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from kwire.ports.executor import Executor

P = ParamSpec("P")
T = TypeVar("T")
W = TypeVar("W")
W_co = TypeVar("W_co", covariant=True)


class WorkerDied(Exception):
    """The worker's process could not be started or ended amid its work; the message says how. What it did is void."""


class Worker(Protocol[W_co]):
    """One object that works for us."""

    @property
    def alive(self) -> bool: ...

    async def call(self, method: Callable[Concatenate[W_co, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Runs a method of the object; returns or raises what it does. WorkerDied where its process ended.

        Who cancels a call ends the worker, if it lives in another process; otherwise the call is finished first.
        """

    async def end(self) -> None:
        """Ends the worker. When this returns it does nothing any more."""


class Workers(Protocol):
    """Starts workers."""

    async def start(self, make: Callable[..., W], *arguments: object) -> Worker[W]:
        """`make(*arguments)` as a worker. Raises what that raises, and WorkerDied."""


class LocalWorkers:
    """Workers that live in this process, and do their work where the executor runs functions."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def start(self, make: Callable[..., W], *arguments: object) -> Worker[W]:
        return _LocalWorker(self._executor, await self._executor.run(make, *arguments))


class _LocalWorker(Generic[W]):
    alive = True

    def __init__(self, executor: Executor, target: W) -> None:
        self._executor = executor
        self._target = target

    async def call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return await self._executor.run(lambda: method(self._target, *arguments, **named))

    async def end(self) -> None:
        pass
