"""The workers that clean: started when one is needed, ended when there was nothing to do for a while."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from kwire.ports.workers import Worker
from kwire.storage.services import StorageServices

if TYPE_CHECKING:
    from kwire.storage.cleaning.work import CleaningWork

_IDLE_S = 10.0
"""A worker has ten MB and more: an idle broker shall not."""


class _Idle(NamedTuple):
    worker: Worker[CleaningWork]
    since: float


class Crew:
    """Workers of one manager. For the event loop's thread."""

    def __init__(self, services: StorageServices) -> None:
        self._services = services
        self._idle: list[_Idle] = []

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Worker[CleaningWork]]:
        """One for as long as the context lasts; it is ended where that raises. WorkerDied where none can be had."""
        from kwire.storage.cleaning.work import CleaningWork

        services = self._services
        if self._idle:
            worker = self._idle.pop().worker
        else:
            worker = await services.workers.start(CleaningWork, services.files)
        try:
            yield worker
        except BaseException:  # whatever it holds or has begun
            await worker.end()
            raise
        self._idle.append(_Idle(worker, services.clock.monotonic()))

    async def dismiss_idle(self) -> float:
        """Ends the workers that had nothing to do for long; seconds until the next may be ended, inf without any."""
        now = self._services.clock.monotonic()
        while self._idle and self._idle[0].since + _IDLE_S <= now:
            await self._idle.pop(0).worker.end()
        return self._idle[0].since + _IDLE_S - now if self._idle else float("inf")

    async def dismiss(self) -> None:
        """Ends those that are idle."""
        while self._idle:
            await self._idle.pop().worker.end()
