"""What is done with all logs at intervals."""

from functools import partial

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kwire.storage import layout, reserve

from .house import House, broken
from .support import ROOT, T0, TOPIC_ID, append, config, idempotent


async def test_the_loops(autojump_clock):
    house = House(
        log_retention_check_interval_ms="1000",
        log_flush_offset_checkpoint_interval_ms="2000",
        log_flush_start_offset_checkpoint_interval_ms="2000",
        replica_high_watermark_checkpoint_interval_ms="500",
        producer_id_expiration_check_interval_ms="1000",
    )
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(retention_ms=10, flush_ms=300, segment_bytes=300))
    quiet = await managed.get_or_create("t", 1, TOPIC_ID, config())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        for i in range(8):
            await append(log, "x" * 50, timestamp=T0 + i)
        await append(quiet, "x")
        log.set_high_watermark(8)
        await wait_all_tasks_blocked()  # the flushes of the rolls
        house.clock.advance(300)
        await trio.sleep(0.4)
        assert log.unflushed == 0  # flush.ms
        assert quiet.unflushed == 1
        await trio.sleep(0.2)
        assert house.files.read(f"{ROOT}/{layout.HIGH_WATERMARKS}") == b"0\n2\nt 0 8\nt 1 0\n"
        house.clock.advance(10_000)
        await trio.sleep(0.5)
        assert log.log_start_offset == 8  # retention.ms
        await trio.sleep(1)
        assert house.files.read(f"{ROOT}/{layout.RECOVERY_POINTS}") == b"0\n2\nt 0 8\nt 1 0\n"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("work", ["flush_due", "cut_reserves", "delete_old_segments"])
async def test_a_fault_of_the_upkeep_ends_neither_it_nor_the_others(work, autojump_clock, caplog):
    house = House(log_retention_check_interval_ms="1000")
    managed = await house.start()
    await with_reserve(managed)
    failed = []

    async def fail():
        failed.append(1)
        raise ValueError("a fault")

    setattr(managed.upkeep, work, fail)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert len(failed) > 5
    assert set(caplog.messages) == {"the storage's upkeep failed, and goes on at its next turn"}


async def test_an_idle_broker_leaves_the_disk_alone(autojump_clock):
    house = House()
    managed = await house.start()
    await append(await managed.get_or_create("t", 0, TOPIC_ID, config()), "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        await trio.sleep(200)
        written = []
        house.files.fault = lambda operation, path, size: (
            written.append(path) if operation in ("write", "sync", "rename") else None
        )
        await trio.sleep(2000)
        assert written == []
        nursery.cancel_scope.cancel()


async def test_idle_producers_are_forgotten():
    house = House(producer_id_expiration_ms="1000")
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    await log.append_as_leader(idempotent(["a"], 0), 0)
    await managed.upkeep.remove_expired_producers()
    assert 7 in log.producer_state.entries
    house.clock.advance(1000)
    await managed.upkeep.remove_expired_producers()
    assert log.producer_state.entries == {}


async def test_flush_ms_of_zero_does_not_keep_the_event_loop_busy(autojump_clock):
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(flush_ms=0))
    looks = []
    flush_due = managed.upkeep.flush_due
    managed.upkeep.flush_due = lambda: looks.append(1) or flush_due()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        await append(log, "a")
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert log.unflushed == 0
    assert 1 < len(looks) <= 100


async def test_each_second_no_log_is_looked_at_that_has_nothing_due(autojump_clock, caplog):
    """There may be thousands of them, at the expense of whoever has a request."""
    house = House()
    managed = await house.start()
    timed = await managed.get_or_create("t", 0, TOPIC_ID, config(flush_ms=300))
    reserving = await managed.get_or_create("t", 1, TOPIC_ID, config())
    quiet = await managed.get_or_create("t", 2, TOPIC_ID, config())
    for log in (timed, quiet):
        await append(log, "a")
    await append(reserving, "x" * reserve.FIRST_AT)
    await append(reserving, "a")
    assert reserving.segments.active.reserve_end
    managed.logs = {quiet.key: None}  # whoever looks at it fails
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.upkeep.run)
        house.clock.advance(300)
        await trio.sleep(3.5)
        nursery.cancel_scope.cancel()
    assert timed.unflushed == 0
    assert not reserving.segments.active.reserve_end
    assert quiet.unflushed == 1
    assert list(managed.services.flushed_by_time) == [timed]
    assert not managed.services.reserving
    assert caplog.messages == []


async def test_an_idle_broker_does_not_wake_up_for_what_no_log_has(autojump_clock):
    house = House()
    managed = await house.start()
    upkeep, looks = managed.upkeep, []
    for name in ("flush_due", "cut_reserves"):
        setattr(upkeep, name, partial(lambda name, work: looks.append(name) or work(), name, getattr(upkeep, name)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upkeep.run)
        log = await managed.get_or_create("t", 0, TOPIC_ID, config())
        await trio.sleep(60)
        assert looks == []
        await append(log, "x" * reserve.FIRST_AT)
        await append(log, "a")
        await trio.sleep(60)
        assert looks == ["cut_reserves"] * 3  # how large it is; that it did not grow; that it has none any more
        assert not log.segments.active.reserve_end
        log.configure(config(flush_ms=300))
        house.clock.advance(300)
        await trio.sleep(3.1)
        nursery.cancel_scope.cancel()
    assert looks[3:] == ["flush_due"] * 10
    assert log.unflushed == 0


async def test_a_log_may_get_a_flush_ms_and_lose_it(autojump_clock):
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        for flush_ms, unflushed in ((300, 0), (2**63 - 1, 1), (500, 0)):
            log.configure(config(flush_ms=flush_ms))
            await append(log, "a")
            house.clock.advance(1000)
            await trio.sleep(2)
            assert log.unflushed == unflushed
        nursery.cancel_scope.cancel()


def registered(services):
    return [*services.flushed_by_time, *services.reserving, *services.compacted]


async def with_reserve(managed):
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(flush_ms=300, cleanup_policy=frozenset({"compact"})))
    await append(log, "x" * reserve.FIRST_AT)
    await append(log, "a")
    assert registered(managed.services) == [log] * 3
    return log


async def test_a_log_that_was_deleted_and_made_anew_is_looked_at_as_the_new_one(autojump_clock):
    house = House()
    managed = await house.start()
    old = await with_reserve(managed)
    await managed.upkeep.cut_reserves()
    await managed.delete([old.key])
    assert registered(managed.services) == []
    log = await with_reserve(managed)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        house.clock.advance(300)
        await trio.sleep(3.5)
        nursery.cancel_scope.cancel()
    assert log.unflushed == 0
    assert not log.segments.active.reserve_end


async def test_logs_of_a_dir_that_failed_are_not_looked_at():
    house = House()
    managed = await house.start()
    log = await with_reserve(managed)
    log.log_dir.fail("test", OSError("broken"))
    assert registered(managed.services) == []


async def test_flush_ms_does_not_mind_the_clock_being_set_back():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(flush_ms=300))
    await append(log, "a")
    house.clock.advance(300)
    house.clock.set(-86_400_000)
    await managed.upkeep.flush_due()
    assert log.unflushed == 0


async def test_upkeep_says_once_that_a_dir_failed(caplog):
    house = House()
    managed = await house.start()
    for partition in range(30):
        log = await managed.get_or_create("t", partition, TOPIC_ID, config(retention_ms=1))
        await append(log, "a")
        log.set_high_watermark(1)
    house.clock.advance(1000)
    house.files.fault = broken(ROOT, "rename")
    await managed.upkeep.delete_old_segments()
    assert not managed.dirs[0].online
    assert len(caplog.records) == 1


async def test_a_tiered_log_still_begins_where_its_first_segment_does_after_a_restart(autojump_clock):
    """In remote storage there may still be what was deleted: it must not come back."""
    house = House()
    tiered = house.topics["t"] = config(remote_storage_enable=True, local_retention_bytes=200, segment_bytes=300)
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, tiered)
    for i in range(12):
        await append(log, "x" * 50, timestamp=T0 + i)
    log.tiered_end_offset = 12
    log.set_high_watermark(12)
    assert await log.delete_old_segments(T0)
    first = log.local_start_offset
    assert log.log_start_offset == 0 < first
    log.advance_log_start(first)
    await house.stop(managed)
    log = (await house.start()).get("t", 0)
    assert (log.log_start_offset, log.segments.first.base_offset) == (first, first)


async def test_a_segment_that_vanished_keeps_no_other_dir_from_its_retention(autojump_clock):
    house = House(("/one", "/two"))
    managed = await house.start()
    lost = await managed.get_or_create("lost", 0, TOPIC_ID, config(retention_ms=10))
    other = await managed.get_or_create("t", 0, TOPIC_ID, config(retention_ms=10))
    await append(other, "x", timestamp=T0)
    other.set_high_watermark(1)
    house.files.remove(lost.segments.active.path(layout.LOG))
    house.clock.advance(10_000)
    await managed.upkeep.delete_old_segments()
    assert [log_dir.online for log_dir in managed.dirs] == [False, True]
    assert other.log_start_offset == 1
