"""The cleaner's workers: when they begin, when they end, and what comes of one that dies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import trio

from kwire.ports.clock import TrioClock
from kwire.ports.executor import InlineExecutor
from kwire.ports.workers import LocalWorkers, WorkerDied
from kwire.storage.cleaning.crew import Crew
from kwire.storage.cleaning.work import CleaningWork
from kwire.storage.manager import LogManager

from ..house import House
from .compacted import Seen, records
from .test_log_cleaner import cleaning, filled


class WatchedWorkers:
    """Workers in this process that are counted, and that die where a test wants it."""

    def __init__(self) -> None:
        self.running = 0
        self.started = 0
        self.deaths = 0
        """How many calls from now on are the last of their worker."""
        self._workers = LocalWorkers(InlineExecutor())

    async def start(self, make: Callable[..., Any], *arguments: object) -> Any:
        self.running += 1
        self.started += 1
        return _Watched(self, await self._workers.start(make, *arguments))


class _Watched:
    def __init__(self, workers: WatchedWorkers, worker: Any) -> None:
        self._workers = workers
        self._worker = worker
        self.alive = True

    async def call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        assert self.alive
        if self._workers.deaths and method is CleaningWork.piece:
            self._workers.deaths -= 1
            await self.end()
            raise WorkerDied("killed")
        return await self._worker.call(method, *arguments)

    async def end(self) -> None:
        self._workers.running -= self.alive
        self.alive = False


def watched(managed: LogManager) -> WatchedWorkers:
    workers = managed.services.workers = WatchedWorkers()
    return workers


def timed_house() -> House:
    house = House()
    house.clock = TrioClock()  # type: ignore[assignment]
    return house


async def test_a_worker_is_there_as_long_as_there_is_something_to_do(autojump_clock) -> None:
    async with cleaning(timed_house()) as managed:
        workers = watched(managed)
        await trio.sleep(60)
        assert workers.started == 0
        await filled(managed)
        await trio.sleep(16)
        assert (workers.started, workers.running) == (1, 1)
        await trio.sleep(12)
        assert workers.running == 0
        await filled(managed, "other")
        await trio.sleep(16)
        assert (workers.started, workers.running) == (2, 1)
    assert workers.running == 0


async def test_a_worker_cleans_one_log_after_the_other(autojump_clock) -> None:
    async with cleaning(timed_house()) as managed:
        workers = watched(managed)
        logs = [await filled(managed, f"t{number}") for number in range(5)]
        await trio.sleep(16)
        assert [len(records(log)) for log in logs] == [1] * 5
        assert workers.started == 1


async def test_a_worker_that_failed_is_not_used_again() -> None:
    managed = await House().start()
    workers = watched(managed)
    crew = Crew(managed.services)
    with pytest.raises(ValueError, match="a fault"):
        async with crew.worker():
            raise ValueError("a fault")
    assert workers.running == 0


async def test_a_cleaning_whose_worker_dies_is_done_again(caplog: pytest.LogCaptureFixture, autojump_clock) -> None:
    async with cleaning(timed_house()) as managed:
        workers = watched(managed)
        workers.deaths = 2
        with caplog.at_level(logging.WARNING, logger="kwire.storage.cleaning"):
            log = await filled(managed)
            await trio.sleep(60)
        assert records(log) == [Seen(9, "k", "9" * 60)]
        assert caplog.messages == ["cleaning of t-0 given up, it will be tried again: killed"] * 2


async def test_a_cleaning_whose_workers_always_die_is_not_done_for_ever(
    caplog: pytest.LogCaptureFixture, autojump_clock
) -> None:
    async with cleaning(timed_house()) as managed:
        workers = watched(managed)
        workers.deaths = 1000
        with caplog.at_level(logging.ERROR, logger="kwire.storage.cleaning"):
            log = await filled(managed)
            await trio.sleep(3600)
        assert len(records(log)) == 10
        assert workers.started == 3
        (message,) = caplog.messages
        assert message == "/data/t-0 can't be compacted, and is left alone until the broker restarts: killed"
        workers.deaths = 0
        other = await filled(managed, "other")
        await trio.sleep(60)
        assert len(records(other)) == 1
        assert not [name for name in managed.services.files.list(log.dir) if ".cleaned" in name]
