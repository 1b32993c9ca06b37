"""An asyncio event loop in a thread of its own: for libraries that know asyncio and not Trio.

One thread serves any number of calls. A cancelled call is cancelled there, and awaited until it has ended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import outcome
import trio

T = TypeVar("T")


class AsyncioThread:
    """Starts with its first call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: object) -> T:
        """Runs a coroutine function of asyncio's there, and returns (or raises) what it does."""
        await trio.lowlevel.checkpoint_if_cancelled()
        call = _Call(self._started())
        return await call.run(function, arguments)

    async def run_with_grace(
        self,
        stop: Callable[[], None],
        seconds: float,
        function: Callable[..., Coroutine[Any, Any, T]],
        *arguments: object,
    ) -> T:
        """The same for what can end in order: where it is cancelled, `stop` is called, and it has `seconds` to end."""
        return await self.run(_with_grace, stop, seconds, function, arguments)

    async def close(self) -> None:
        """Ends the thread. No call may be under way."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            await trio.to_thread.run_sync(thread.join)
            loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            # A daemon: what hangs in it must not keep the process alive.
            self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
            self._thread.start()
        return self._loop


async def _with_grace(
    stop: Callable[[], None],
    seconds: float,
    function: Callable[..., Coroutine[Any, Any, T]],
    arguments: tuple[object, ...],
) -> T:
    working = asyncio.ensure_future(function(*arguments))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        stop()
        _, going_on = await asyncio.wait([working], timeout=seconds)
        if going_on:
            working.cancel()
            await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # seen: asyncio would tell of it in the log
        raise


class _Call:
    """A task of Trio's that waits for one of asyncio's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._token = trio.lowlevel.current_trio_token()
        self._waiting = trio.lowlevel.current_task()
        self._working: asyncio.Task[Any] | None = None
        self._raise_cancel: Callable[[], object] | None = None

    async def run(self, function: Callable[..., Coroutine[Any, Any, T]], arguments: tuple[object, ...]) -> T:
        self._loop.call_soon_threadsafe(self._start, function, arguments)
        return await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, raise_cancel: Callable[[], object]) -> trio.lowlevel.Abort:
        self._raise_cancel = raise_cancel
        self._loop.call_soon_threadsafe(self._cancel)
        return trio.lowlevel.Abort.FAILED  # the other task says when it has ended

    # In the other thread

    def _start(self, function: Callable[..., Coroutine[Any, Any, T]], arguments: tuple[object, ...]) -> None:
        self._working = self._loop.create_task(function(*arguments))
        self._working.add_done_callback(self._done)

    def _cancel(self) -> None:
        assert self._working is not None
        self._working.cancel()

    def _done(self, task: asyncio.Task[Any]) -> None:
        result: outcome.Maybe[Any]
        if task.cancelled():
            result = outcome.Error(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            result = outcome.Error(error)
        else:
            result = outcome.Value(task.result())
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._resume, result)

    # Back in Trio's

    def _resume(self, result: outcome.Maybe[Any]) -> None:
        if self._raise_cancel is not None and isinstance(result, outcome.Error):
            result = outcome.capture(self._raise_cancel)
        trio.lowlevel.reschedule(self._waiting, result)
