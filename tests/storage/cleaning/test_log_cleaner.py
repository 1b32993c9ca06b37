"""Which logs are cleaned when, by a manager with its dirs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio

from kwire.config.topic import LogConfig
from kwire.ports.clock import TrioClock
from kwire.storage import layout
from kwire.storage.cleaning.cleanable import look
from kwire.storage.cleaning.cleaned import CleanedFiles
from kwire.storage.cleaning.log_cleaner import LogCleaner
from kwire.storage.log import Log
from kwire.storage.manager import LogManager

from ..house import House
from .compacted import Seen, put, records

DAY = 86_400_000
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=300, file_delete_delay_ms=DAY)


@asynccontextmanager
async def cleaning(house: House) -> AsyncIterator[LogManager]:
    """A manager that runs; at the end it is stopped cleanly."""
    managed = await house.start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        yield managed
        nursery.cancel_scope.cancel()
    await house.stop(managed)


async def filled(managed: LogManager, name: str = "t", count: int = 10, config: LogConfig = COMPACTED) -> Log:
    """A log of several segments, of which only the last records are of any use."""
    log = await managed.get_or_create(name, 0, bytes(15) + b"t", config)
    for number in range(count):
        await put(log, ("k", f"{number}" * 60))
    log.roll()
    return log


async def settle() -> None:
    """Long enough for the cleaner to come by."""
    await trio.sleep(60)


async def test_a_dirty_log_is_cleaned_and_its_checkpoint_written(autojump_clock) -> None:
    house = House()
    house.topics["t"] = COMPACTED
    async with cleaning(house) as managed:
        log = await filled(managed)
        await settle()
        assert records(log) == [Seen(9, "k", "9" * 60)]
        assert house.files.read("/data/cleaner-offset-checkpoint") == b"0\n1\nt 0 10\n"
        version = log.segments.version
        await settle()
        assert log.segments.version == version  # there is nothing dirty in it
    async with cleaning(house) as managed:
        log = managed.logs["t", 0]
        await settle()
        assert log.segments.version == 0
        await put(log, ("k", "x"))
        log.roll()
        await put(log, ("k", "y"))
        assert (await look(log, 10, 0)).dirty_bytes == log.segments[len(log.segments) - 2].size


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(segment_bytes=300),
        LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=300, min_cleanable_dirty_ratio=1.0),
        LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=300, min_compaction_lag_ms=DAY),
    ],
)
async def test_what_is_not_due_is_left_alone(config: LogConfig, autojump_clock) -> None:
    async with cleaning(House()) as managed:
        log = await filled(managed, config=config)
        await settle()
        assert len(records(log)) == 10


async def test_without_the_cleaner_nothing_is_cleaned(autojump_clock) -> None:
    async with cleaning(House(log_cleaner_enable="false")) as managed:
        log = await filled(managed)
        await settle()
        assert len(records(log)) == 10


async def test_what_waits_too_long_is_cleaned_however_little_it_is(autojump_clock) -> None:
    house = House()
    lag = LogConfig(
        cleanup_policy=frozenset({"compact"}),
        segment_bytes=300,
        min_cleanable_dirty_ratio=1.0,
        max_compaction_lag_ms=DAY,
    )
    async with cleaning(house) as managed:
        log = await filled(managed, config=lag)
        await settle()
        assert len(records(log)) == 10
        house.clock.advance(DAY + 1000)
        await settle()
        assert len(records(log)) == 1


async def test_a_segment_that_holds_old_records_is_sealed(autojump_clock) -> None:
    house = House()
    lag = LogConfig(cleanup_policy=frozenset({"compact"}), max_compaction_lag_ms=1000)
    async with cleaning(house) as managed:
        log = await managed.get_or_create("t", 0, bytes(16), lag)
        await put(log, ("k", "1"))
        house.clock.advance(1001)
        await put(log, ("k", "2"))
        assert [segment.base_offset for segment in log.segments] == [0, 1]


async def test_young_segments_wait(autojump_clock) -> None:
    house = House()
    config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=300, min_compaction_lag_ms=1000)
    async with cleaning(house) as managed:
        log = await filled(managed, count=6, config=config)
        house.clock.advance(2000)
        for number in range(4):
            await put(log, ("k", f"{number}" * 60))
        log.roll()
        await settle()
        assert [seen.offset for seen in records(log)] == [5, 6, 7, 8, 9]


async def test_records_without_a_time_are_as_young_as_their_file(autojump_clock) -> None:
    house = House()
    config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=300, min_compaction_lag_ms=1000)
    async with cleaning(house) as managed:
        log = await managed.get_or_create("t", 0, bytes(16), config)
        for number in range(4):
            await put(log, ("k", f"{number}" * 60), time_ms=-1)
        log.roll()
        await settle()
        assert len(records(log)) == 4
        house.clock.advance(1001)
        await settle()
        assert len(records(log)) == 1


async def test_what_cannot_be_cleaned_is_told_of_once(caplog: pytest.LogCaptureFixture, autojump_clock) -> None:
    house = House()
    async with cleaning(house) as managed:
        bad, good = await filled(managed, "bad"), await filled(managed, "good")
        house.files.open(bad.segments.first.path(layout.LOG)).pwrite([b"\xff"], 100)
        with caplog.at_level(logging.ERROR, logger="kwire.storage.cleaning"):
            await settle()
            await settle()
        assert len(records(good)) == 1
        (message,) = caplog.messages
        assert message == (
            "/data/bad-0 can't be compacted, and is left alone until the broker restarts: "
            "/data/bad-0/00000000000000000000.log has no batch with a right checksum at byte 0"
        )
        assert bad.log_dir.online
        await put(bad, ("k", "goes on"))


async def test_a_topic_of_the_same_name_begins_anew(autojump_clock) -> None:
    house = House()
    async with cleaning(house) as managed:
        await filled(managed)
        await settle()
        await managed.delete([("t", 0)])
        assert house.files.read("/data/cleaner-offset-checkpoint") == b"0\n0\n"
        log = await filled(managed, count=4)
        await settle()
        assert records(log) == [Seen(3, "k", "3" * 60)]


async def test_a_truncated_log_is_dirty_from_there_on(autojump_clock) -> None:
    house = House()
    async with cleaning(house) as managed:
        log = await filled(managed)
        await put(log, ("other", "10"))
        log.roll()
        await settle()
        assert log.log_dir.checkpoint(layout.CLEANER_OFFSETS) == {("t", 0): 11}
        log.truncate_to(9)
        await settle()
        assert log.log_dir.checkpoint(layout.CLEANER_OFFSETS) == {("t", 0): 9}


async def test_a_truncation_while_a_cleaning_ends_counts_all_the_same() -> None:
    managed = await House().start()
    log = await filled(managed, config=LogConfig(cleanup_policy=frozenset({"compact"})))
    run = managed.services.executor.run

    async def truncating(function, *arguments):  # type: ignore[no-untyped-def]
        if function == managed.services.files.sync_dir:  # the last that is waited for
            log.truncate_to(9)
            await managed.services.chores.finish_due()
        return await run(function, *arguments)

    managed.services.executor.run = truncating  # type: ignore[method-assign]
    cleaner = LogCleaner(managed)
    dirtiest = await cleaner.dirtiest()
    assert dirtiest is not None
    await cleaner.clean(dirtiest)
    assert log.log_end_offset == 9
    assert log.log_dir.checkpoint(layout.CLEANER_OFFSETS) == {}


async def test_gaps_that_cleanings_left_are_no_holes_when_the_policy_has_changed(autojump_clock) -> None:
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, bytes(16), COMPACTED)
    for number in range(4):
        await put(log, (f"{number}", "x" * 60))
        await put(log, ("k", f"{number}" * 60))
    log.roll()
    cleaner = LogCleaner(managed)
    dirtiest = await cleaner.dirtiest()
    assert dirtiest is not None
    await cleaner.clean(dirtiest)
    left = records(log)
    assert [seen.offset for seen in left] == [0, 2, 4, 6, 7]
    house.topics["t"] = LogConfig()
    house.kill()
    assert records((await house.start()).logs["t", 0]) == left


async def test_little_memory_for_reading_and_writing(autojump_clock) -> None:
    async with cleaning(House(log_cleaner_io_buffer_size="1")) as managed:
        log = await filled(managed)
        await settle()
        assert records(log) == [Seen(9, "k", "9" * 60)]


def timed_house(rate: str) -> House:
    """One whose clock goes with Trio's."""
    house = House(log_cleaner_io_max_bytes_per_second=rate)
    house.clock = TrioClock()  # type: ignore[assignment]
    return house


@pytest.mark.parametrize("later", ["-1", "1000000"])
async def test_a_rate_of_zero_lets_nothing_pass_until_it_is_changed(later: str, autojump_clock) -> None:
    managed = await timed_house("0").start()
    log = await filled(managed)
    cleaner = LogCleaner(managed)
    dirtiest = await cleaner.dirtiest()
    assert dirtiest is not None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cleaner.clean, dirtiest)
        await trio.sleep(3600)
        assert len(records(log)) == 10
        managed.config = managed.config.with_dynamic({"log.cleaner.io.max.bytes.per.second": later})
        await trio.sleep(2)
        assert len(records(log)) == 1


async def test_retention_waits_for_a_cleaning_of_the_same_log(autojump_clock) -> None:
    """One that takes longer than the time between two looks for old segments would never come to its end."""
    house = timed_house("100")
    house.keys["log.retention.check.interval.ms"] = "1000"
    both = LogConfig(cleanup_policy=frozenset({"compact", "delete"}), segment_bytes=300, retention_ms=-1)
    async with cleaning(house) as managed:
        log = await filled(managed, config=both)
        await trio.sleep(16)
        assert managed.cleaner.cleans(log)
        log.config = replace(both, retention_bytes=0)
        await trio.sleep(5)
        assert managed.cleaner.cleans(log)
        assert log.log_start_offset == 0
        await trio.sleep(60)
        assert not managed.cleaner.cleans(log)
        assert log.log_start_offset == 10
        assert log.log_dir.checkpoint(layout.CLEANER_OFFSETS) == {("t", 0): 10}


async def test_a_negative_rate_is_none(autojump_clock) -> None:
    managed = await timed_house("-1").start()
    log = await filled(managed)
    cleaner = LogCleaner(managed)
    dirtiest = await cleaner.dirtiest()
    assert dirtiest is not None
    began = trio.current_time()
    await cleaner.clean(dirtiest)
    assert len(records(log)) == 1
    assert trio.current_time() == began


async def test_a_log_that_becomes_compacted_is_looked_at_and_one_that_is_no_more_is_not() -> None:
    managed = await House().start()
    log = await filled(managed, config=LogConfig())
    cleaner = LogCleaner(managed)
    for policy in ("compact", "delete", "compact"):
        log.configure(replace(COMPACTED, cleanup_policy=frozenset({policy})))
        dirtiest = await cleaner.dirtiest()
        assert (dirtiest is not None and dirtiest.log is log) == (policy == "compact")


async def test_a_log_truncated_while_it_is_not_compacted_is_dirty_from_there_on() -> None:
    managed = await House().start()
    log = await filled(managed, count=3, config=LogConfig())
    log.log_dir.write_checkpoint(layout.CLEANER_OFFSETS, {("t", 0): 3})
    log.truncate_to(1)
    await managed.services.chores.finish_due()
    assert log.log_dir.checkpoint(layout.CLEANER_OFFSETS) == {("t", 0): 1}


async def test_the_rate_is_kept(autojump_clock) -> None:
    managed = await timed_house("100").start()
    log = await filled(managed, count=4)
    size = log.size
    cleaner = LogCleaner(managed)
    dirtiest = await cleaner.dirtiest()
    assert dirtiest is not None
    began = trio.current_time()
    await cleaner.clean(dirtiest)
    assert len(records(log)) == 1
    assert trio.current_time() - began > 2 * size / 100  # everything was read twice


async def test_an_offset_that_the_log_does_not_have_any_more(caplog: pytest.LogCaptureFixture, autojump_clock) -> None:
    house = House()
    async with cleaning(house) as managed:
        log = await filled(managed)
        assert (await look(log, None, 0)).first_dirty_offset == 0
        assert (await look(log, 4, 0)).first_dirty_offset == 4
        assert not caplog.messages
        assert (await look(log, 11, 0)).first_dirty_offset == 0
        assert caplog.messages == ["t-0 ends at 10, before offset 11 up to which it was cleaned: it is cleaned anew"]
        log.advance_log_start(6)
        assert (await look(log, 4, 0)).first_dirty_offset == 6


async def test_a_checkpoint_beyond_the_end_is_put_right_before_more_is_appended(
    caplog: pytest.LogCaptureFixture, autojump_clock
) -> None:
    """A power cut can take the end of a log that had been cleaned."""
    house = House()
    house.topics["t"] = COMPACTED
    managed = await house.start()
    await put(await managed.get_or_create("t", 0, bytes(16), COMPACTED), ("k", "0"))
    managed.dirs[0].write_checkpoint(layout.CLEANER_OFFSETS, {("t", 0): 4})
    await house.stop(managed)
    async with cleaning(house) as managed:
        await settle()
        assert house.files.read("/data/cleaner-offset-checkpoint") == b"0\n1\nt 0 0\n"
        await settle()
        assert len(caplog.messages) == 1
        log = await filled(managed)
        await settle()
        assert records(log) == [Seen(10, "k", "9" * 60)]


async def test_a_dir_that_fails_while_cleaning_is_offline(autojump_clock) -> None:
    house = House()
    async with cleaning(house) as managed:
        log = await filled(managed)

        def fault(operation: str, path: str, size: int) -> None:
            if operation == "rename" and path.endswith(".cleaned"):
                raise OSError(5, "Input/output error", path)

        house.files.fault = fault
        await settle()
        assert not log.log_dir.online
        house.files.fault = None


async def test_a_fault_of_the_cleaner_costs_one_log_its_cleaning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    def fail(*arguments: object) -> None:
        raise ValueError("a fault")

    house = House()
    async with cleaning(house) as managed:
        log = await filled(managed)
        with monkeypatch.context() as patch, caplog.at_level(logging.ERROR, logger="kwire.storage.cleaning"):
            patch.setattr(CleanedFiles, "complete", fail)
            await settle()
        assert caplog.messages == [
            "the cleaner failed",
            "/data/t-0 can't be compacted, and is left alone until the broker restarts: a fault",
        ]
        assert log.log_dir.online
        other = await filled(managed, "other")
        await settle()
        assert (len(records(log)), len(records(other))) == (10, 1)
