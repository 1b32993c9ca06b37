"""Several tasks write a log dir's checkpoints: at intervals, after a deletion, after a truncation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kwire.config.topic import LogConfig
from kwire.ports import turns
from kwire.ports.memory_files import MemoryFileSystem
from kwire.storage import checkpoints, layout
from kwire.storage.manager import LogManager

from .support import CLUSTER, ROOT, TOPIC_ID, ManualClock, append, manager


class HeldExecutor:
    """Worker threads that take their time: calls begin together and end one after the other, the oldest last."""

    def __init__(self) -> None:
        self.held: list[trio.Event] = []
        self.most_writers = 0
        self._writers = 0

    async def run(self, function: Callable, *arguments: object) -> object:
        if function.__name__ not in ("write_checkpoint", "write_high_watermarks", "<lambda>"):
            return function(*arguments)
        self._writers += 1
        self.most_writers = max(self.most_writers, self._writers)
        released = trio.Event()
        self.held.append(released)
        await released.wait()
        self._writers -= 1
        return function(*arguments)

    async def release_all(self) -> None:
        await wait_all_tasks_blocked()
        while self.held:
            self.held.pop().set()
            await wait_all_tasks_blocked()


async def loaded(files: MemoryFileSystem) -> LogManager:
    managed = manager(files, ManualClock())
    await managed.lock()
    await managed.load(CLUSTER, 1, lambda topic: LogConfig())
    return managed


def said(files: MemoryFileSystem, name: str) -> dict[tuple[str, int], int]:
    return dict(checkpoints.decode_offsets(files.read(f"{ROOT}/{name}")))


@pytest.mark.parametrize("name", [layout.HIGH_WATERMARKS, layout.RECOVERY_POINTS])
async def test_a_deleted_partition_does_not_come_back_by_a_write_that_had_begun(name: str) -> None:
    """Its offsets would be taken for those of a new topic of the same name, and its records for flushed ones."""
    files = MemoryFileSystem()
    managed = await loaded(files)
    for partition in (0, 1):
        await append(await managed.get_or_create("t", partition, TOPIC_ID, LogConfig()), "a")
    held = managed.services.executor = HeldExecutor()
    upkeep = managed.upkeep
    write = upkeep.write_high_watermarks if name == layout.HIGH_WATERMARKS else upkeep.write_recovery_points
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await wait_all_tasks_blocked()
            nursery.start_soon(managed.delete, [("t", 0)])
            await held.release_all()
    assert ("t", 0) not in said(files, name)
    assert held.most_writers == 1


async def test_a_truncation_is_not_undone_by_a_write_that_had_begun() -> None:
    files = MemoryFileSystem()
    managed = await loaded(files)
    log = await managed.get_or_create("t", 0, TOPIC_ID, LogConfig())
    for _ in range(3):
        await append(log, "a")
    await log.flush()
    await managed.upkeep.write_recovery_points()
    await append(log, "a")
    await log.flush()
    held = HeldExecutor()
    managed.services.executor = managed.services.chores._executor = held
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(managed.upkeep.write_recovery_points)
            await wait_all_tasks_blocked()
            log.truncate_to(1)
            nursery.start_soon(managed.services.chores.finish_due)
            await held.release_all()
    assert said(files, layout.RECOVERY_POINTS) == {("t", 0): 1}


async def test_others_have_their_turns_while_it_is_seen_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)
    managed, passes = await of_ten_logs(MemoryFileSystem()), 0
    async with trio.open_nursery() as nursery:

        async def other() -> None:
            nonlocal passes
            while True:
                await trio.lowlevel.checkpoint()
                passes += 1

        nursery.start_soon(other)
        await managed.upkeep.write_high_watermarks()
        assert passes >= 10
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("partition", [0, 9])
@pytest.mark.parametrize("passes", [0, 1, 5, 9, 20])
async def test_a_partition_that_is_deleted_meanwhile_is_not_spoken_of(
    monkeypatch: pytest.MonkeyPatch, partition: int, passes: int
) -> None:
    files = MemoryFileSystem()
    managed = await of_ten_logs(files)
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.upkeep.write_high_watermarks)
        for _ in range(passes):
            await trio.lowlevel.checkpoint()
        await managed.delete([("t", partition)])
    assert said(files, layout.HIGH_WATERMARKS).keys() == {("t", number) for number in range(10)} - {("t", partition)}


class RecoveryPointsAtWriting:
    """Notes what a checkpoint is to say, and what was true when its writing began."""

    def __init__(self, managed: LogManager) -> None:
        self.said: dict[tuple[str, int], int] = {}
        self.true: dict[tuple[str, int], int] = {}
        self._managed = managed

    async def run(self, function: Callable, *arguments: object) -> object:
        if function.__name__ == "write_checkpoint":
            self.said = dict(arguments[1])  # type: ignore[call-overload]
            self.true = {log.key: log.recovery_point for log in self._managed.logs.values()}
        return function(*arguments)


async def test_recovery_points_are_written_as_they_are_at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start takes what was sealed before the file was written, and ends at a recovery point, for flushed: no log may
    begin another segment between the look at it and the writing."""
    managed = await of_ten_logs(MemoryFileSystem())
    noted = managed.services.executor = RecoveryPointsAtWriting(managed)
    monkeypatch.setattr(turns, "TURN_SECONDS", -1.0)
    async with trio.open_nursery() as nursery:

        async def flush(number: int) -> None:
            log = managed.logs[("t", number)]
            while True:
                await append(log, "a")
                await log.flush()
                await trio.lowlevel.checkpoint()

        for number in range(10):
            nursery.start_soon(flush, number)
        with trio.fail_after(5):
            while any(log.recovery_point == 2 for log in managed.logs.values()):
                await trio.lowlevel.checkpoint()
        await managed.upkeep.write_recovery_points()
        nursery.cancel_scope.cancel()
    assert noted.said == noted.true
    assert noted.said.keys() == managed.logs.keys()


async def of_ten_logs(files: MemoryFileSystem) -> LogManager:
    """Each of two batches that are flushed."""
    managed = await loaded(files)
    for number in range(10):
        log = await managed.get_or_create("t", number, TOPIC_ID, LogConfig())
        await append(log, "a")
        await append(log, "a")
        await log.flush()
    return managed
