"""Who asks for a flush while one is under way shares the next: few fsyncs, and no acknowledgement before its own."""

from __future__ import annotations

import errno
from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kwire.ports.simulated_disk import Effect, SimulatedDisk, once
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage import flushing

from .held import HeldExecutor
from .support import ManualClock, Place, append, end_transaction, idempotent, read_all


@pytest.fixture
def disk():
    return SimulatedDisk(ManualClock())


@pytest.fixture
def place(disk):
    place = Place(disk, flush_messages=1)
    place.executor = HeldExecutor()
    return place


async def opened(place):
    """The log, with one record that is flushed; from now on worker threads wait."""
    log = place.open()
    await append(log, "first")
    log.advance_high_watermark(log.settled_end_offset)
    place.executor.held = True
    return log


async def test_a_thousand_producers_share_a_few_fsyncs(place, disk, nursery):
    log = await opened(place)
    before = disk.syncs
    for number in range(1000):
        nursery.start_soon(append, log, f"{number}")
    await wait_all_tasks_blocked()
    while place.executor.waiting:
        await place.executor.let_go()
    assert log.recovery_point == log.log_end_offset == 1001
    assert disk.syncs - before <= 4
    disk.cut_power()
    assert len(read_all(place.open(clean=False))) == 1001


async def test_who_comes_amid_a_flush_waits_for_the_next(place, disk, nursery):
    log = await opened(place)
    acknowledged = []

    async def produce(value):
        acknowledged.append(await append(log, value))

    nursery.start_soon(produce, "a")
    await wait_all_tasks_blocked()
    nursery.start_soon(produce, "b")
    nursery.start_soon(produce, "c")
    await wait_all_tasks_blocked()
    assert (acknowledged, log.log_end_offset, log.settled_end_offset) == ([], 4, 1)
    await place.executor.let_go()
    assert (acknowledged, log.settled_end_offset, len(place.executor.waiting)) == ([1], 2, 1)
    await place.executor.let_go()
    assert (sorted(acknowledged), log.settled_end_offset, place.executor.waiting) == ([1, 2, 3], 4, [])


async def test_a_segment_that_is_sealed_amid_a_flush_is_not_flushed_by_it(nursery):
    """Its indexes are not: a power cut would take the aborted transactions, and consumers see their records."""
    place = Place(flush_messages=1, segment_bytes=400)
    place.executor = executor = HeldExecutor()
    log = place.open()
    await log.append_as_leader(idempotent(["gone"], 0, transactional=True), 0)
    executor.held = True
    nursery.start_soon(partial(end_transaction, log, commit=False))
    await wait_all_tasks_blocked()
    nursery.start_soon(append, log, "b" * 300)
    await wait_all_tasks_blocked()
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    while executor.waiting:
        await executor.let_go()
    executor.held = False
    await place.services.chores.finish_due()
    assert log.recovery_point == 3
    place.memory.lose_power()
    again = place.open(clean=False, recovery_point=log.recovery_point)
    assert [aborted.producer_id for aborted in again.aborted(0, again.read(0, 1000))] == [7]


async def test_nothing_is_acknowledged_before_it_is_on_the_disk(place, disk, nursery):
    log = await opened(place)
    acknowledged = [0]

    async def produce(value):
        acknowledged.append(await append(log, value))

    for number in range(5):
        nursery.start_soon(produce, f"{number}")
    await wait_all_tasks_blocked()
    for number in range(5, 9):
        nursery.start_soon(produce, f"{number}")
    await wait_all_tasks_blocked()
    await place.executor.let_go()
    assert 1 < len(acknowledged) < 10
    disk.cut_power()
    there = [offset for offset, _ in read_all(place.open(clean=False))]
    assert set(acknowledged) <= set(there)
    for gate in place.executor.waiting:
        gate.set()


async def test_a_retry_of_what_is_not_flushed_yet_waits_too(place, nursery):
    log = await opened(place)
    told = []

    async def produce():
        info = await log.append_as_leader(idempotent(["a"], 0), 0)
        told.append((info.first_offset, info.duplicate))

    nursery.start_soon(produce)
    await wait_all_tasks_blocked()
    nursery.start_soon(produce)
    await wait_all_tasks_blocked()
    assert told == []
    while place.executor.waiting:
        await place.executor.let_go()
    assert told == [(1, False), (1, True)]


async def test_a_failed_fsync_is_acknowledged_to_nobody_and_never_repeated(place, disk, nursery):
    """What is written after a failed fsync may be taken for written by the next one, though the disk has lost it."""
    log = await opened(place)
    refused = []

    async def produce(value):
        with pytest.raises(KafkaError) as caught:
            await append(log, value)
        refused.append(caught.value.code)

    nursery.start_soon(produce, "a")
    await wait_all_tasks_blocked()
    nursery.start_soon(produce, "b")
    await wait_all_tasks_blocked()
    disk.fault = once("sync", Effect(errno.EIO))
    before = disk.syncs
    await place.executor.let_go()
    while place.executor.waiting:
        await place.executor.let_go()
    assert refused == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert disk.syncs == before + 1
    assert not log.log_dir.online
    await produce("c")


async def test_who_is_cancelled_does_not_keep_the_others_from_their_flush(place, nursery):
    log = await opened(place)
    scope = trio.CancelScope()

    async def given_up():
        with scope:
            await append(log, "a")

    nursery.start_soon(given_up)
    await wait_all_tasks_blocked()
    nursery.start_soon(append, log, "b")
    await wait_all_tasks_blocked()
    scope.cancel()
    await wait_all_tasks_blocked()
    while place.executor.waiting:
        await place.executor.let_go()
    assert log.recovery_point == log.settled_end_offset == 3


async def test_while_flushes_are_held_none_is_under_way(place, disk, nursery):
    log = await opened(place)
    nursery.start_soon(append, log, "second")
    await wait_all_tasks_blocked()
    entered = trio.Event()
    leave = trio.Event()

    async def hold() -> None:
        async with log.flushes_held():
            entered.set()
            await leave.wait()

    nursery.start_soon(hold)
    await wait_all_tasks_blocked()
    assert not entered.is_set()
    nursery.start_soon(append, log, "third")
    await place.executor.let_go()
    assert entered.is_set()
    assert (log.recovery_point, place.executor.waiting) == (2, [])
    leave.set()
    await wait_all_tasks_blocked()
    await place.executor.let_go()
    assert log.recovery_point == 3


async def test_one_holds_flushes_at_a_time(place, nursery):
    """The end of the first hold is not that of the second: a log may be moved on before its last move is over."""
    log = await opened(place)
    entered = []

    async def hold(number: int, leave: trio.Event) -> None:
        async with log.flushes_held():
            entered.append(number)
            await leave.wait()

    leaving = [trio.Event(), trio.Event()]
    for number, leave in enumerate(leaving):
        nursery.start_soon(hold, number, leave)
        await wait_all_tasks_blocked()
    assert entered == [0]
    leaving[0].set()
    await wait_all_tasks_blocked()
    assert entered == [0, 1]
    nursery.start_soon(append, log, "second")
    await wait_all_tasks_blocked()
    assert place.executor.waiting == []
    leaving[1].set()
    await wait_all_tasks_blocked()
    await place.executor.let_go()
    assert log.recovery_point == 2


async def test_a_flush_that_an_error_in_the_program_ends_is_nobodys(place, disk, nursery, monkeypatch):
    log = await opened(place)
    heard = []

    async def joined(value: str) -> None:
        try:
            await append(log, value)
        except (KafkaError, ZeroDivisionError) as error:
            heard.append(type(error))

    monkeypatch.setattr(flushing, "flush_up_to", lambda log, offset: 1 // 0)
    async with log.flushes_held():
        nursery.start_soon(joined, "second")
        nursery.start_soon(joined, "third")
        await wait_all_tasks_blocked()
    await wait_all_tasks_blocked()
    assert set(heard) == {KafkaError, ZeroDivisionError}
