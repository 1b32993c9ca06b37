"""How far a disk is read ahead of who goes through a file, and that nothing else reads ahead."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.ports import real_files
from kwire.ports.files import File
from kwire.ports.read_ahead import ReadAhead
from kwire.ports.real_files import PosixFile, PosixFileSystem

from .. import page_cache

KB = 1024
SLICE = 256 * KB
AHEAD = 2 * SLICE
FILE = 40 * SLICE


def test_a_slice_on_its_own_is_read_alone() -> None:
    ahead = ReadAhead()
    assert not ahead.is_due(10 * SLICE, SLICE)
    assert ahead.next(10 * SLICE, SLICE) == (11 * SLICE, 11 * SLICE)
    assert not ahead.is_due(50 * SLICE, SLICE)
    assert ahead.next(50 * SLICE, SLICE) == (51 * SLICE, 51 * SLICE)


def test_who_reads_on_finds_it_read_ahead() -> None:
    ahead = ReadAhead()
    ahead.next(0, SLICE)
    second = SLICE - 100  # a slice ends amid a batch, with which the next begins
    assert ahead.is_due(second, SLICE)
    assert ahead.next(second, SLICE) == (second + SLICE, second + SLICE + AHEAD)
    assert not ahead.is_due(2 * second, SLICE)  # half of it is left ahead
    assert ahead.is_due(2 * second + AHEAD // 2, SLICE)


def test_what_is_under_way_is_not_asked_for_again() -> None:
    """The disk is slower than who reads."""
    ahead = ReadAhead()
    reached = SLICE
    for start in range(0, 20 * SLICE, SLICE):
        asked_from, upto = ahead.next(start, SLICE)
        assert asked_from == max(reached, start + SLICE)
        assert len(ahead._reached) == 1
        reached = upto
    assert ahead.next(20 * SLICE, SLICE)[1] >= 21 * SLICE + AHEAD // 2


@pytest.mark.parametrize(("size", "expected"), [(4 * KB, 512 * KB), (1024 * KB, 2048 * KB), (51_200 * KB, 8192 * KB)])
def test_so_much_is_read_ahead(size: int, expected: int) -> None:
    ahead = ReadAhead()
    ahead.next(0, size)
    assert ahead.next(size, size) == (2 * size, 2 * size + expected)


def test_streams_of_one_file_do_not_disturb_each_other() -> None:
    ahead = ReadAhead()
    starts = range(0, 800 * SLICE, 100 * SLICE)
    for start in starts:
        ahead.next(start, SLICE)
    for start in starts:
        assert ahead.next(start + SLICE, SLICE) == (start + 2 * SLICE, start + 2 * SLICE + AHEAD)


def test_a_stream_that_is_over_is_forgotten() -> None:
    ahead = ReadAhead()
    ahead.next(0, SLICE)
    _, reached = ahead.next(SLICE, SLICE)
    ahead.finish(reached)
    assert not ahead.is_due(reached - SLICE // 2, SLICE)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 30)), max_size=60))
def test_whoever_reads_has_asked_for_what_he_reads(reads: list[tuple[int, int]]) -> None:
    ahead = ReadAhead()
    for position, size in reads:
        position, size = position * 64 * KB, size * 64 * KB
        start, upto = ahead.next(position, size)
        assert position + size <= start <= upto <= position + size + 2 * max(size, 256 * KB)
        assert upto in ahead._reached
        assert len(set(ahead._reached)) == len(ahead._reached) <= 8


def cached(file: File, start: int, end: int) -> list[bool]:
    """Of each page of a range, whether it is in memory. Asked without reading."""
    return page_cache.pages_cached(file)[start // page_cache.PAGE : end // page_cache.PAGE]


@pytest.fixture(params=["the disk there is", "a disk that answers within a look"])
def looks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> page_cache.Looks:
    looks = page_cache.Looks(monkeypatch)
    looks.fast = request.param != "the disk there is"
    return looks


@pytest.fixture
def cold(looks: page_cache.Looks, tmp_path: Path) -> File:
    """A file of which nothing is cached."""
    path = f"{tmp_path}/a"
    with open(path, "wb") as file:
        file.write(os.urandom(FILE))
    page_cache.evict(path)
    return PosixFileSystem().open(path)


@pytest.mark.parametrize("page", range(6))
def test_each_page_of_a_small_slice_counts(cold: File, looks: page_cache.Looks, page: int) -> None:
    start = 4 * KB - 100  # it reaches into a fifth page
    cold.pread(SLICE, 0)
    looks.cold_page = page
    assert cold.is_loading_due(start, 16 * KB) == (page < 5)


def test_a_small_slice_is_cold_where_its_middle_is(cold: File) -> None:
    cold.resident(FILE - 1, 1)  # from now on the system reads what it is asked for and no more
    for page in (0, 3):
        cold.pread(1, page * page_cache.PAGE)
    assert cached(cold, 0, 16 * KB) == [True, False, False, True]
    assert cold.is_loading_due(0, 16 * KB) or all(cached(cold, 0, 16 * KB))


@pytest.mark.parametrize("at", [0, 128 * KB, SLICE - 1])
def test_a_large_slice_is_looked_at_in_steps_and_at_its_end(cold: File, looks: page_cache.Looks, at: int) -> None:
    cold.pread(2 * SLICE, 0)
    assert not cold.is_loading_due(0, SLICE)
    looks.cold_page = at // page_cache.PAGE
    assert cold.is_loading_due(0, SLICE)


@pytest.mark.parametrize("size", [4 * KB, 16 * KB, SLICE, 10 * SLICE])
def test_nothing_else_reads_ahead(cold: File, looks: page_cache.Looks, size: int) -> None:
    """Neither when it is asked about, nor where it is sent from."""
    for start in (0, 20 * SLICE):
        looks.found.clear()
        due = cold.is_loading_due(start, size)
        assert looks.found
        assert due == looks.refused
        assert not looks.waiting
        if size <= 16 * KB:
            assert due or all(cached(cold, start, start + size))
        cold.load(start, size)
        looks.waiting.clear()
        assert cold.resident(start, size)
        cold.pread(size, start)
        assert all(cached(cold, start, start + size))
        assert not any(cached(cold, start + size, start + 20 * SLICE))


@pytest.mark.parametrize("size", [4 * KB, 16 * KB])
def test_who_reads_on_seldom_waits(cold: File, size: int) -> None:
    loads = 0
    for start in range(0, FILE, size):
        if cold.is_loading_due(start, size):
            cold.load(start, size)
            loads += 1
        elif not all(cached(cold, start, start + size)):
            pytest.fail("it would be waited for where it is sent")
    assert loads <= FILE // size // 2  # some are still under way: the disk may be slower than this


def test_a_stream_is_read_ahead(cold: File, looks: page_cache.Looks) -> None:
    cold.load(0, SLICE)
    cold.load(SLICE, SLICE)
    seemed_there = all(found for position, found in looks.found if position >= 2 * SLICE)
    ends = 2 * SLICE + AHEAD
    until_cached(cold, 0, ends)
    assert not cold.is_loading_due(2 * SLICE, SLICE)
    # It is there, what follows is not, and is asked for without a wait. A stream whose next part seemed to be there is
    # one that needs no more.
    assert not cold.is_loading_due(3 * SLICE, SLICE)
    if not seemed_there:
        until_cached(cold, ends, ends + 2 * SLICE)


def until_cached(file: File, start: int, end: int) -> None:
    deadline = time.monotonic() + page_cache.PATIENCE_S
    while not all(cached(file, start, end)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_at_the_end_of_a_file_nothing_is_due(cold: File) -> None:
    """Who has caught up reads what was just written: no worker need look at it."""
    for start in range(0, FILE, SLICE):
        cold.load(start, SLICE)
    cold.pwrite([bytes(4 * SLICE)], FILE)
    assert not any(cold.is_loading_due(start, SLICE) for start in range(FILE - SLICE, FILE + 3 * SLICE, SLICE // 4))


def test_a_stream_ends_where_all_is_cached(cold: File) -> None:
    cold.pread(FILE, 0)
    for start in (0, SLICE):
        cold.load(start, SLICE)
    assert not any(cold.is_loading_due(start, SLICE) for start in range(2 * SLICE, FILE, SLICE))


def test_what_was_cut_off_is_not_waited_for(cold: File) -> None:
    cold.load(FILE - SLICE, 3 * SLICE)
    cold.load(FILE + SLICE, SLICE)


def test_advice_that_is_refused_is_done_without(
    cold: File, looks: page_cache.Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSYS, "no advice")

    monkeypatch.setattr(os, "posix_fadvise", refuse)
    assert cold.is_loading_due(0, SLICE) == looks.refused
    assert looks.found
    cold.load(0, SLICE)
    cold.load(SLICE, SLICE)
    assert all(cached(cold, 0, 2 * SLICE))


def test_a_system_that_reads_less_than_it_is_asked_for(
    cold: File, looks: page_cache.Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does whose read_ahead_kb is smaller."""
    advise = os.posix_fadvise

    def half(descriptor: int, position: int, size: int, advice: int) -> None:
        advise(descriptor, position, size // 2, advice)

    looks.fast = False  # else what its looks find is there: nobody would wait for it
    cold.is_loading_due(0, SLICE)
    monkeypatch.setattr(os, "posix_fadvise", half)
    cold.load(0, SLICE)
    assert all(cached(cold, 0, SLICE))


def test_who_is_faster_than_the_disk_waits_for_it(cold: File, looks: page_cache.Looks) -> None:
    for start in (0, SLICE):
        cold.load(start, SLICE)
    looks.cold_page = 2 * SLICE // page_cache.PAGE
    assert cold.is_loading_due(2 * SLICE, SLICE)


def test_a_slice_that_is_under_way_does_not_end_its_stream(cold: File, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough of it was asked for: there is nothing to be read ahead, and nothing to be learnt from that."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(PosixFile, "_read_ahead", lambda file, start, upto: asked.append((start, upto)))
    for start in (0, SLICE, 2 * SLICE):
        cold.load(start, SLICE)
    real_files._threads().shutdown()
    real_files._threads.cache_clear()
    assert asked == [(2 * SLICE, 2 * SLICE + AHEAD)]


def test_without_another_descriptor_it_is_loaded_slice_by_slice(cold: File, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none left, or this is not Linux."""

    def full(*_: object) -> int:
        raise OSError(errno.EMFILE, "no descriptor is left")

    monkeypatch.setattr(os, "open", full)
    for start in range(0, 4 * SLICE, SLICE):
        cold.load(start, SLICE)
    monkeypatch.undo()
    assert all(cached(cold, 0, 4 * SLICE))


def test_what_was_deleted_is_read_on_and_closed(cold: File) -> None:
    assert isinstance(cold, PosixFile)
    os.unlink(cold.path)
    for start in (0, SLICE):
        cold.load(start, SLICE)
    until_cached(cold, 0, 4 * SLICE)
    descriptors = [cold._descriptor, cold._front_to_back]
    files = {os.fstat(descriptor).st_ino for descriptor in descriptors}
    assert len(files) == 1
    cold.close()
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    cold._read_ahead(4 * SLICE, 5 * SLICE)  # it was asked for before
