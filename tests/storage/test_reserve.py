"""The padding ahead of an active segment's end."""

import errno
import itertools
import logging
from types import SimpleNamespace

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from kwire.ports.memory_files import MemoryFileSystem
from kwire.storage import layout, reserve

from .house import House, broken
from .support import TOPIC_ID, Place, append, config, read_all

LOG = f"/data/t-0/{layout.segment_name(0, layout.LOG)}"
RECORD = "v" * 60_000
ENOUGH = -(-reserve.FIRST_AT // len(RECORD)) + 1
"""Records after which there is a reserve."""


async def place_with_reserve(**values):
    place = Place(**values)
    log = place.open()
    for _ in range(ENOUGH):
        await append(log, RECORD)
    assert place.memory.file_size(LOG) > log.segments.active.size
    return place, log


@given(
    sizes=st.lists(st.integers(1, 300_000), max_size=40),
    limit=st.sampled_from([1 << 30, 1_000_001]),
    cuts=st.sets(st.integers(0, 40), max_size=3),
)
def test_it_is_made_ahead_and_overwrites_nothing(sizes, limit, cuts):
    file = MemoryFileSystem().open("/f", create=True)
    content, made = b"", 0
    for number, size in enumerate(sizes, 1):
        end = len(content)
        if number in cuts:
            file.truncate(end)
            made = 0
        if end >= made - reserve.LEFT:
            made = reserve.make(file, end, made, limit)
            assert made == file.size() == max(end, min(made, limit))
            assert made >= min(end + reserve.LEFT, limit)
            assert made <= end + 2 * reserve.LEFT + reserve.STEP
            assert reserve.follows(file, end, made) is (made > end)
        data = bytes([number]) * size
        file.pwrite([data], end)
        content += data
        assert file.pread(len(content), 0) == content


@given(end=st.integers(0, 1 << 20), limit=st.sampled_from([1 << 30, 1_000_001]))
def test_it_is_written_in_pieces_that_lie_in_a_folio_each(end, limit):
    written = []

    def pwrite(buffers, position):
        size = sum(map(len, buffers))
        written.append((position, size))
        return size

    file = SimpleNamespace(pwrite=pwrite)
    made = reserve.make(file, end, 0, limit)
    at = end
    for position, size in written:
        assert position == at
        assert position // reserve.PIECE == (position + size - 1) // reserve.PIECE
        at += size
    assert at == made


async def test_a_small_segment_has_none():
    place = Place()
    log = place.open()
    await append(log, "x" * (reserve.FIRST_AT - 1000))
    await append(log, "x")
    assert place.memory.file_size(LOG) == log.segments.active.size


async def test_closing_cuts_it():
    place, log = await place_with_reserve()
    await log.close()
    assert place.memory.file_size(LOG) == log.segments.active.size


@pytest.mark.parametrize("preallocate", [False, True])
async def test_closing_cuts_also_what_was_flushed_before(preallocate, caplog):
    place, log = await place_with_reserve(preallocate=preallocate, segment_bytes=4 * reserve.STEP)
    known = read_all(log)
    await log.flush()
    await log.close()
    assert place.memory.file_size(LOG) == log.segments.active.size
    assert read_all(place.open()) == known
    assert not caplog.records


async def test_rolling_cuts_it():
    place, log = await place_with_reserve()
    log.roll()
    assert place.memory.file_size(LOG) == log.segments[0].size


async def test_truncating_cuts_it_and_appends_go_on():
    place, log = await place_with_reserve()
    log.truncate_to(2)
    assert place.memory.file_size(LOG) == log.segments.active.size
    for _ in range(2 * ENOUGH):
        await append(log, RECORD)
    known = read_all(log)
    assert len(known) == 2 + 2 * ENOUGH
    assert read_all(place.open(clean=False)) == known


async def test_a_truncation_leaves_no_zeros_before_the_next_one():
    place, log = await place_with_reserve()
    log.truncate_to(2)
    for _ in range(ENOUGH):
        await append(log, RECORD)
    active = log.segments.active
    assert reserve.follows(active.file, active.size, place.memory.file_size(LOG))


async def test_a_failed_write_leaves_no_zeros_before_the_next_one():
    place, log = await place_with_reserve()
    active = log.segments.active
    place.memory.fault = broken(LOG, "write")
    with pytest.raises(OSError, match="Input/output error"):
        active.append([b"x" * 100], [])
    place.memory.fault = None
    assert place.memory.file_size(LOG) == active.size
    active.make_reserve(1 << 30)
    assert reserve.follows(active.file, active.size, place.memory.file_size(LOG))


async def test_after_a_clean_stop_not_the_first_append_makes_one():
    place, log = await place_with_reserve()
    await log.close()
    again = place.open()
    await append(again, "x")
    assert place.memory.file_size(LOG) == again.segments.active.size


async def test_the_file_does_not_outgrow_segment_bytes():
    place = Place(segment_bytes=600_000)
    log = place.open()
    for _ in range(ENOUGH):
        await append(log, RECORD)
        assert all(place.memory.file_size(segment.path(layout.LOG)) <= 600_000 for segment in log.segments)
    assert place.memory.file_size(LOG) == log.segments[0].size
    assert len(log.segments) == 2


async def test_a_log_that_is_flushed_often_has_none():
    place = Place(flush_messages=1)
    log = place.open()
    for _ in range(ENOUGH):
        await append(log, RECORD)
    assert place.memory.file_size(LOG) == log.segments.active.size


async def test_behind_damage_a_chain_of_batches_may_end_where_it_begins():
    place, log = await place_with_reserve(index_interval_bytes=1 << 30)
    for number in range(20):
        await append(log, f"{number}")
    await log.flush()
    active = log.segments.active
    place.memory.open(LOG).pwrite([b"x"], active.find(ENOUGH + 3)[0] + 16)  # its magic
    again = place.open(clean=False, recovery_point=log.log_end_offset)
    assert again.log_end_offset == ENOUGH + 20
    assert [offset for offset, _ in read_all(again, ENOUGH + 4)] == list(range(ENOUGH + 4, ENOUGH + 20))


async def test_a_sealed_segment_that_kept_it_takes_none_with_it():
    """The power went before the cut was on the disk."""
    place, log = await place_with_reserve()
    kept = place.memory.read(LOG)[log.segments.active.size :]
    size = log.segments.active.size
    log.roll()
    await append(log, "x")
    known = read_all(log)
    place.memory.open(LOG).pwrite([kept], size)
    again = place.open(clean=False)
    assert read_all(again) == known
    assert again.size == sum(segment.size for segment in again.segments)
    assert place.memory.file_size(LOG) == size


async def test_after_a_kill_it_is_cut_without_a_word(caplog):
    place, log = await place_with_reserve()
    known = read_all(log)
    again = place.open(clean=False)
    assert read_all(again) == known
    assert place.memory.file_size(LOG) == again.segments.active.size
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    await append(again, "x")
    assert read_all(again) == [*known, (len(known), "x")]


@pytest.mark.parametrize("found", [b"x", bytes(4096)])
async def test_what_else_lies_within_it_is_told_of(found, caplog):
    place, log = await place_with_reserve()
    known = read_all(log)
    place.memory.open(LOG).pwrite([found], log.segments.active.size + 100)
    assert read_all(place.open(clean=False)) == known
    assert "no whole batch follows" in caplog.text


@pytest.mark.parametrize("fitting", [0, 6])
async def test_a_full_disk_takes_what_fits_without_one(fitting):
    """Or with the pieces of it that fit."""
    place = Place()
    log = place.open()

    pieces = itertools.count()

    def fault(operation, path, size):
        of_reserve = operation == "write" and path == LOG and size <= reserve.PIECE  # less than a batch
        if of_reserve and next(pieces) >= fitting:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        return None

    place.memory.fault = fault
    for _ in range(ENOUGH + 1):
        await append(log, RECORD)
    assert log.log_dir.online
    active = log.segments.active
    assert place.memory.file_size(LOG) == max(active.size, active.reserve_end)
    assert (active.reserve_end > active.size) is (fitting > 0)
    assert len(read_all(place.open(clean=False))) == ENOUGH + 1


@pytest.mark.plain
async def test_a_nearly_full_volume_has_none():
    place = Place()
    log = place.open()
    log.log_dir.room = SimpleNamespace(check=lambda size, coordinator: None, spares=lambda size: False)
    for _ in range(ENOUGH):
        await append(log, RECORD)
    assert place.memory.file_size(LOG) == log.segments.active.size
    log.log_dir.room.spares = lambda size: True
    await append(log, RECORD)
    assert place.memory.file_size(LOG) > log.segments.active.size


# Upkeep


async def house_with_reserve(**values):
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(**values))
    for _ in range(ENOUGH):
        await append(log, RECORD)
    assert house.files.file_size(LOG) > log.segments.active.size
    return house, managed, log


async def test_it_is_cut_where_nothing_was_appended_between_two_looks():
    house, managed, log = await house_with_reserve()
    for _ in range(3):
        await managed.upkeep.cut_reserves()
        assert house.files.file_size(LOG) > log.segments.active.size
        await append(log, "x")
    for _ in range(3):
        await managed.upkeep.cut_reserves()
    assert house.files.file_size(LOG) == log.segments.active.size
    await append(log, "x" * (reserve.FIRST_AT - 1000))
    await append(log, "x")
    assert house.files.file_size(LOG) == log.segments.active.size  # now and then a record makes none
    await append(log, RECORD)
    await append(log, RECORD)
    assert house.files.file_size(LOG) > log.segments.active.size
    known = read_all(log)
    await house.stop(managed)
    managed = await house.start()
    assert read_all(managed.logs["t", 0]) == known


async def test_what_was_preallocated_stays_so():
    house, managed, log = await house_with_reserve(preallocate=True, segment_bytes=8 * reserve.STEP)
    for _ in range(3):
        await managed.upkeep.cut_reserves()
    assert house.files.file_size(LOG) == log.config.segment_bytes


async def test_a_cut_that_fails_takes_the_log_dir_offline():
    house, managed, log = await house_with_reserve()
    house.files.fault = broken(LOG, "truncate")
    await managed.upkeep.cut_reserves()
    await managed.upkeep.cut_reserves()
    assert not log.log_dir.online
    await managed.upkeep.cut_reserves()


async def test_the_loop_cuts_it(autojump_clock):
    house, managed, log = await house_with_reserve()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert house.files.file_size(LOG) == log.segments.active.size
