"""Moves and the cleaner: it leaves a log on its way alone, and what it has begun before does no harm."""

from __future__ import annotations

import pytest
import trio

from kwire.storage import layout
from kwire.storage.cleaning.cleanable import look
from kwire.storage.log import Log
from kwire.storage.manager import LogManager
from kwire.storage.moving import move, swap
from tests.storage.cleaning.compacted import put, records
from tests.storage.house import House
from tests.storage.support import config

from .movers import ONE, TWO, a_log, moved, moving

KEYS = 7


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move, "PIECE_BYTES", 200)
    monkeypatch.setattr(swap, "TAIL_BYTES", 150)


async def compacted(managed: LogManager, count: int = 200) -> Log:
    log = await a_log(managed, segment_bytes=1000, cleanup_policy=frozenset({"compact"}))
    for number in range(count):
        await put(log, (f"key {number % KEYS}", f"{number}"))
    log.roll()
    return log


def latest(log: Log) -> dict[str, str | None]:
    return {seen.key: seen.value for seen in records(log)}


@pytest.mark.parametrize("late", [0, 5, 20, 60, 120])
async def test_a_cleaning_under_way(late: int, autojump_clock) -> None:
    house = House([ONE, TWO])
    house.topics["t"] = config(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)
    managed = await house.start()
    log = await compacted(managed)
    expected = latest(log)
    cleanable = await look(log, None, house.clock.now)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.cleaner.clean, cleanable)
        for _ in range(late):
            await trio.lowlevel.checkpoint()
        async with moving(managed):
            await managed.moves.move(log, managed.dirs[1])
            await moved(log, managed.dirs[1])
    assert latest(log) == expected
    assert all(log_dir.online for log_dir in managed.dirs)
    house.kill()
    managed = await house.start()
    log = managed.logs["t", 0]
    assert latest(log) == expected
    log.set_high_watermark(log.log_end_offset)
    await managed.cleaner.clean(await look(log, None, house.clock.now))
    assert len(records(log)) < 2 * KEYS
    assert latest(log) == expected
    assert not [name for name in house.files.list(log.dir) if name.endswith((layout.CLEANED, layout.SWAP))]


async def test_how_far_it_is_clean_goes_along(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await compacted(managed)
    await managed.cleaner.clean(await look(log, None, house.clock.now))
    cleaned = managed.dirs[0].checkpoint(layout.CLEANER_OFFSETS)["t", 0]
    assert cleaned > 100
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        assert await managed.cleaner.dirtiest() is None
        await moved(log, managed.dirs[1])
        while ("t", 0) in managed.dirs[0].checkpoint(layout.CLEANER_OFFSETS):
            await trio.lowlevel.checkpoint()
    assert managed.dirs[1].checkpoint(layout.CLEANER_OFFSETS) == {("t", 0): cleaned}
    assert house.files.read(f"{ONE}/{layout.CLEANER_OFFSETS}") == b"0\n0\n"
