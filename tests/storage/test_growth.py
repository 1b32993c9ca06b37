"""What a log costs where there are thousands of them, counted: operations on files, bytes of memory, open files."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from functools import partial

import pytest
import trio
import trio.testing

from kwire.ports.executor import Executor
from kwire.storage import layout
from kwire.storage.manager import LogManager

from .house import House
from .support import ROOT, TOPIC_ID, append, config, idempotent

LOGS = 60
READING = {"list", "open", "read"}
DAMAGES = (None, b"", b"?", bytes(1200), b"\xff" * 1200)


async def filled(house: House, size: int = 100, batches: int = 1) -> LogManager:
    managed = await house.start()
    for partition in range(LOGS):
        log = await managed.get_or_create("t", partition, TOPIC_ID, config())
        for _ in range(batches):
            await append(log, "x" * size)
    return managed


def watched(house: House) -> Counter[str]:
    """Counts the operations below the partitions' folders from now on, by kind; `bytes` is what was read."""
    seen: Counter[str] = Counter()

    def fault(operation: str, path: str, size: int) -> None:
        if path.startswith(f"{ROOT}/t-"):
            seen[operation] += 1
            seen["bytes"] += size if operation == "read" else 0

    house.files.fault = fault
    return seen


@pytest.mark.parametrize("batches", [1, 100])
async def test_a_clean_start_reads_little_of_each_log_and_writes_nothing(batches):
    house = House()
    await house.stop(await filled(house, 1000, batches))
    seen = watched(house)
    await house.start()
    assert set(seen) <= READING | {"bytes"}
    assert seen["list"] == LOGS
    assert seen["open"] + seen["read"] <= 8 * LOGS
    assert seen["bytes"] <= 25_000 * LOGS


async def stop(house: House, managed: LogManager) -> None:
    """A while after whatever was written."""
    house.clock.advance(10)
    await house.stop(managed)
    house.clock.advance(10)


@pytest.mark.parametrize("batches", [1, 100])
async def test_a_start_after_a_kill_does_the_same_for_logs_that_nobody_wrote_to_since_the_clean_stop(batches):
    house = House()
    await stop(house, await filled(house, 1000, batches))
    await house.start()
    house.kill()
    seen = watched(house)
    managed = await house.start()
    assert not set(seen) - READING - {"bytes"}
    assert seen["bytes"] <= 40_000 * LOGS
    assert {log.log_end_offset for log in managed.logs.values()} == {batches}


async def test_a_start_after_a_kill_writes_the_newest_time_of_a_small_log_and_nothing_else():
    house = House()
    await filled(house)
    house.kill()
    seen = watched(house)
    managed = await house.start()
    assert set(seen) <= READING | {"bytes", "write", "truncate"}
    assert seen["write"] == LOGS
    assert {log.log_end_offset for log in managed.logs.values()} == {1}


async def test_a_log_that_was_written_to_since_the_clean_stop_is_gone_through_after_a_kill():
    house = House()
    await stop(house, await filled(house, 1000, 100))
    managed = await house.start()
    await append(managed.get("t", 7), "y")
    log = house.files.open(f"{ROOT}/t-7/{layout.segment_name(0, layout.LOG)}")
    log.pwrite([b"?"], log.size() - 3)
    house.kill()
    managed = await house.start()
    assert managed.get("t", 7).log_end_offset == 100
    assert managed.get("t", 8).log_end_offset == 100


async def test_the_producers_are_known_after_a_kill_that_followed_a_clean_stop():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    await log.append_as_leader(idempotent(["p"], 0), 0)
    await stop(house, managed)
    await house.start()
    house.kill()
    log = (await house.start()).get("t", 0)
    assert log.producer_state.entries[7].last_sequence == 0
    assert (await log.append_as_leader(idempotent(["p"], 0), 0)).duplicate


@pytest.mark.parametrize("set_back", [0, 5_000])
async def test_nothing_is_taken_for_untouched_by_times_that_say_nothing(set_back):
    """Written in the millisecond of the clean stop, or the clock was set to before that."""
    house = House()
    managed = await filled(house)
    await house.stop(managed)
    await house.start()
    house.clock.set(-set_back)
    house.kill()
    house.files.open(f"{ROOT}/t-7/{layout.segment_name(0, layout.LOG)}").pwrite([b"?"], 80)
    managed = await house.start()
    assert managed.get("t", 7).log_end_offset == 0


@pytest.mark.parametrize("suffix", [layout.OFFSET_INDEX, layout.TIME_INDEX])
@pytest.mark.parametrize("damage", DAMAGES, ids=("missing", "empty", "a byte", "zeros", "ones"))
async def test_indexes_that_were_damaged_between_two_runs_are_built_anew_at_their_first_use(suffix, damage):
    house = House()
    house.topics["t"] = config()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    for number in range(100):
        await append(log, str(number) * 500, timestamp=number)
    await house.stop(managed)
    path = f"{ROOT}/t-0/{layout.segment_name(0, suffix)}"
    if damage is None:
        house.files.remove(path)
    else:
        house.files.write(path, damage)
    managed = await house.start()
    log = managed.get("t", 0)
    assert log.log_end_offset == 100
    await append(log, "last", timestamp=100)
    assert log.log_end_offset == 101
    found = await log.offset_for_timestamp(50)
    assert found is not None
    assert found.offset == 50
    for offset in (0, 50, 99, 100):
        read = await log.fetch(offset, 1)
        assert read.slice is not None or read.incomplete
    await house.stop(managed)
    assert (await house.start()).get("t", 0).log_end_offset == 101


class Waiting:
    """Worker threads whose calls end when the test says so, the youngest first."""

    def __init__(self, inner: Executor) -> None:
        self._inner = inner
        self.held: list[trio.Event] | None = None

    async def run(self, function, *arguments):  # type: ignore[no-untyped-def]
        done = await self._inner.run(function, *arguments)
        if self.held is not None:
            self.held.append(trio.Event())
            await self.held[-1].wait()
        return done


async def test_appends_and_fetches_that_load_the_same_indexes_do_not_undo_each_other():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    for number in range(100):
        await append(log, str(number) * 500)
    await house.stop(managed)
    managed = await house.start()
    log = managed.get("t", 0)
    executor = managed.services.executor = Waiting(managed.services.executor)
    executor.held = held = []
    async with trio.open_nursery() as nursery:
        for number, call in enumerate(
            (partial(log.fetch, 50, 1), partial(append, log, "a"), partial(append, log, "b"))
        ):
            nursery.start_soon(call)
            while len(held) <= number:
                await trio.lowlevel.checkpoint()
        executor.held = None
        held[1].set()
        await trio.testing.wait_all_tasks_blocked()
        assert log.log_end_offset == 101
        indexes = log.segments.active.indexes
        held[2].set()
        held[0].set()
    assert log.log_end_offset == 102
    assert log.segments.active.indexes is indexes


@pytest.mark.plain
async def test_a_log_that_nobody_writes_to_takes_little_memory():
    house = House()
    await house.stop(await filled(house))
    managed = await house.start()
    house.kill()
    gc.collect()
    tracemalloc.start()
    try:
        managed = await house.start()
        gc.collect()
        snapshot = tracemalloc.take_snapshot().filter_traces(
            [tracemalloc.Filter(False, "*memory_files.py"), tracemalloc.Filter(False, tracemalloc.__file__)]
        )
    finally:
        tracemalloc.stop()
    storage = snapshot.filter_traces([tracemalloc.Filter(True, "*/kwire/storage/*")])
    assert len(managed.logs) == LOGS
    assert sum(trace.size for trace in storage.statistics("filename")) < 1500 * LOGS


async def test_thousands_of_segments_that_take_records_keep_few_files_open():
    house = House()
    managed = await house.start()
    managed.services.open_files = type(managed.services.open_files)(limit=20)
    for partition in range(LOGS):
        log = await managed.get_or_create("t", partition, TOPIC_ID, config())
        await append(log, "x")
    for log in managed.logs.values():
        await append(log, "y")
    assert len(managed.services.open_files) <= 20
    assert sum(segment._file is not None for log in managed.logs.values() for segment in log.segments) <= 20
