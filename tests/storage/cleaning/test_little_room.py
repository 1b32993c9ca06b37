"""The cleaner on a volume that is nearly full: it begins nothing that does not fit, and is no reason for a failure."""

from __future__ import annotations

import errno
import logging
from dataclasses import replace

import pytest

from kwire.config.topic import LogConfig
from kwire.ports.memory_files import MemoryFileSystem
from kwire.storage import layout
from kwire.storage.log import Log
from kwire.storage.manager import LogManager

from ..house import House
from .compacted import latest, put, records
from .test_log_cleaner import DAY, cleaning, settle

KIB = 1024
KEPT = 100 * KIB
TOTAL = 20 * KEPT
"""One part in twenty is kept."""

CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=200 * KIB, file_delete_delay_ms=DAY)
ENOUGH = 230 * KIB
"""For one segment and its indexes."""


class SmallHouse(House):
    """Whose volume takes no more than `TOTAL`."""

    def __init__(self) -> None:
        super().__init__()
        self.files = MemoryFileSystem(self.clock, total_bytes=TOTAL)
        self.files.fault = self._fault
        self.written: list[str] = []
        """The `.cleaned` files."""
        self.broken: set[str] = set()
        """What fails of `.cleaned` files, as if the volume were full."""

    def _fault(self, operation: str, path: str, size: int) -> None:
        if path.endswith(layout.CLEANED) and operation == "write":
            self.written.append(path)
        lacks = operation == "write" and self.files.space("")[1] < size
        if lacks or (path.endswith(layout.CLEANED) and operation in self.broken):
            raise OSError(errno.ENOSPC, "No space left on device", path)

    def leave(self, size: int) -> None:
        """Others write so much that this is left beyond what is kept, or remove something."""
        self.files.write("/others", b"")
        self.files.write("/others", bytes(self.files.space("")[1] - KEPT - size))


async def filled(managed: LogManager, keys: int = 40, count: int = 40, config: LogConfig = CONFIG) -> Log:
    """Batches of 20 KiB, of which nine are a segment; each key but the last few is superseded by the next one."""
    log = await managed.get_or_create("t", 0, bytes(15) + b"t", config)
    for number in range(count):
        await put(log, (f"k{number % keys}", f"{number:05}" * 4 * KIB))
    log.roll()
    return log


def leftovers(house: House) -> list[str]:
    return [name for name in house.files.list("/data/t-0") if ".cleaned" in name or ".swap" in name]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_what_does_not_fit_is_not_begun_and_told_of_once(
    caplog: pytest.LogCaptureFixture, autojump_clock
) -> None:
    house = SmallHouse()
    async with cleaning(house) as managed:
        log = await filled(managed, keys=3)
        before = records(log)
        house.leave(100 * KIB)
        await put(log, ("more", "is taken"))
        for _ in range(3):
            await settle()
        assert log.log_dir.online
        assert house.written == []
        (line,) = told(caplog)
        assert line.startswith("t-0 is not cleaned from offset 0 on: the volume of log dir /data has too little room")
        house.leave(ENOUGH)
        await settle()
        assert [seen for seen in records(log) if seen.key != "more"] == latest(before)
        assert leftovers(house) == []
        # It is told of anew after it was better.
        house.clock.advance(DAY)
        await managed.services.chores.finish_due()
        house.leave(900 * KIB)
        for number in range(20):
            await put(log, ("k", f"{number:05}" * 4 * KIB))
        log.roll()
        house.leave(50 * KIB)
        await settle()
        await settle()
        assert len(told(caplog)) == 2
        assert log.log_dir.online


async def test_a_group_that_does_not_fit_is_cleaned_segment_by_segment(
    caplog: pytest.LogCaptureFixture, autojump_clock
) -> None:
    """For each, the files of the one before go at once, instead of after file.delete.delay.ms."""
    house = SmallHouse()
    async with cleaning(house) as managed:
        log = await filled(managed, keys=1000)
        log.config = replace(CONFIG, segment_bytes=1000 * KIB)
        before = records(log)
        house.leave(ENOUGH)
        assert len(log.segments) > 4
        segments = list(log.segments)
        await settle()
        assert log.log_dir.checkpoint(layout.CLEANER_OFFSETS) == {("t", 0): 40}
        assert not set(map(id, segments[:-1])) & set(map(id, log.segments))
        assert records(log) == before
        assert told(caplog) == []
        assert log.log_dir.online


async def test_as_much_is_cleaned_as_fits(caplog: pytest.LogCaptureFixture, autojump_clock) -> None:
    house = SmallHouse()
    async with cleaning(house) as managed:
        log = await filled(managed, keys=3, count=9)
        log.config = replace(CONFIG, segment_bytes=600 * KIB)
        for number in range(25):
            await put(log, (f"late{number}", f"{number:05}" * 4 * KIB))
        log.roll()
        log.config = CONFIG
        before = records(log)
        log_dir = log.log_dir
        house.leave(ENOUGH)
        await settle()
        await settle()
        large = log.segments[len(log.segments) - 2]
        assert large.size > 400 * KIB
        assert log_dir.checkpoint(layout.CLEANER_OFFSETS) == {("t", 0): large.base_offset}
        assert records(log) == latest(before)
        assert len(told(caplog)) == 1
        house.leave(800 * KIB)
        await settle()
        assert log_dir.checkpoint(layout.CLEANER_OFFSETS) == {("t", 0): 34}
        assert records(log) == latest(before)
        assert log_dir.online


@pytest.mark.parametrize("operation", ["open", "write", "sync", "rename"])
async def test_a_full_volume_met_amid_a_cleaning(
    operation: str, caplog: pytest.LogCaptureFixture, autojump_clock
) -> None:
    house = SmallHouse()
    async with cleaning(house) as managed:
        log = await filled(managed, keys=3)
        before = records(log)
        house.broken.add(operation)
        await settle()
        assert log.log_dir.online
        assert leftovers(house) == []
        assert len(told(caplog)) == 1
        assert latest(records(log)) == latest(before)
        attempts = len(house.written)
        await settle()
        assert len(house.written) == attempts  # it waits before it tries again
        house.broken.clear()
        house.clock.advance(300_000)
        await settle()
        assert records(log) == latest(before)
        assert leftovers(house) == []


async def test_others_fill_the_volume_while_a_segment_is_written(
    caplog: pytest.LogCaptureFixture, autojump_clock
) -> None:
    house = SmallHouse()
    async with cleaning(house) as managed:
        log = await filled(managed, keys=1000)
        before = records(log)
        house.leave(ENOUGH)
        fault = house.files.fault

        def others(operation: str, path: str, size: int) -> None:
            if path.endswith(".log.cleaned") and operation == "write":
                house.files.fault = fault
                house.leave(10 - KEPT)
                try:
                    return fault(operation, path, size)  # type: ignore[misc, return-value]
                finally:
                    house.leave(ENOUGH)
            return fault(operation, path, size)  # type: ignore[misc, return-value]

        house.files.fault = others  # type: ignore[assignment]
        await settle()
        assert log.log_dir.online
        assert house.written != []
        assert leftovers(house) == []
        assert records(log) == before
        assert len(told(caplog)) == 1


async def test_what_there_was_no_room_for_is_removed(caplog: pytest.LogCaptureFixture, autojump_clock) -> None:
    """By retention, and there is still no more room: what comes after it is small enough."""
    house = SmallHouse()
    async with cleaning(house) as managed:
        config = replace(CONFIG, cleanup_policy=frozenset({"compact", "delete"}), segment_bytes=400 * KIB)
        log = await filled(managed, keys=3, count=18, config=config)
        for number in range(4):
            await put(log, (f"k{number % 2}", f"{number:05}" * 4 * KIB))
        log.roll()
        large, small, active = log.segments
        house.leave(100 * KIB)
        await settle()
        assert len(told(caplog)) == 1
        log.set_high_watermark(log.log_end_offset)
        log.advance_log_start(small.base_offset)
        assert await log.delete_old_segments(house.clock.now) == 1
        left = records(log)
        house.leave(100 * KIB)
        await settle()
        assert log.log_dir.checkpoint(layout.CLEANER_OFFSETS) == {("t", 0): active.base_offset}
        assert records(log) == latest(left)
        assert large.size > 300 * KIB
        assert len(told(caplog)) == 1
