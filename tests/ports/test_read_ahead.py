"""How far a disk is read ahead of who goes through a file, and that nothing else reads ahead."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.ports.files import File
from kwire.ports.read_ahead import AHEAD, ReadAhead
from kwire.ports.real_files import PosixFileSystem

from .. import page_cache

SLICE = 256 * 1024
FILE = 40 * SLICE


def test_a_slice_on_its_own_is_read_alone() -> None:
    ahead = ReadAhead()
    assert not ahead.is_due(1000, 100)
    assert ahead.next(1000, 100) == (1000, 1100)
    assert not ahead.is_due(5000, 100)
    assert ahead.next(5000, 100) == (5000, 5100)


def test_who_reads_on_finds_it_read_ahead() -> None:
    ahead = ReadAhead()
    ahead.next(0, 100)
    assert ahead.is_due(90, 100)  # a slice ends amid a batch, with which the next begins
    assert ahead.next(90, 100) == (100, 190 + AHEAD * 100)
    assert not ahead.is_due(185, 100)  # as much as it is left ahead
    assert ahead.is_due(280, 100)
    assert ahead.next(280, 100) == (390, 380 + AHEAD * 100)


def test_streams_of_one_file_do_not_disturb_each_other() -> None:
    ahead = ReadAhead()
    for start in (0, 100_000):
        ahead.next(start, 100)
    for start in (100, 100_100):
        assert ahead.next(start, 100) == (start, start + 100 + AHEAD * 100)


def test_a_stream_that_is_over_is_forgotten() -> None:
    ahead = ReadAhead()
    ahead.next(0, 100)
    _, reached = ahead.next(100, 100)
    ahead.finish(reached)
    assert not ahead.is_due(reached - 50, 100)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 1_000)), max_size=60))
def test_what_is_asked_for_joins_what_was_asked_for(reads: list[tuple[int, int]]) -> None:
    """No gap is left that nobody asked for, and few streams are remembered."""
    ahead, asked = ReadAhead(), set[int]()
    for position, size in reads:
        due = ahead.is_due(position, size)
        start, end = ahead.next(position, size)
        assert start <= end
        assert end >= position + size
        if due:
            assert start in asked
        else:
            assert (start, end) == (position, position + size)
        asked.add(end)
        assert len(ahead._reached) <= 8


def cached(file: File, start: int, end: int) -> list[bool]:
    """Of each page of a range, whether it is in memory. Asked without reading."""
    descriptor = file.fileno()
    assert descriptor is not None
    pages = (ctypes.c_ubyte * (FILE // page_cache.PAGE))()
    with mmap.mmap(descriptor, FILE) as mapped:
        there = ctypes.c_char.from_buffer(mapped)
        assert not ctypes.CDLL(None).mincore(ctypes.byref(there), ctypes.c_size_t(FILE), pages)
        del there
    return [bool(page & 1) for page in pages[start // page_cache.PAGE : end // page_cache.PAGE]]


@pytest.fixture
def cold(tmp_path: Path) -> File:
    """A file of which nothing is cached."""
    path = f"{tmp_path}/a"
    with open(path, "wb") as file:
        file.write(os.urandom(FILE))
    page_cache.evict(path)
    return PosixFileSystem().open(path)


def test_nothing_else_reads_ahead(cold: File) -> None:
    assert cold.is_loading_due(0, SLICE)
    cold.load(0, SLICE)
    assert all(cached(cold, 0, SLICE))
    assert not any(cached(cold, SLICE, FILE))
    cold.load(20 * SLICE, SLICE)
    assert not any(cached(cold, SLICE, 20 * SLICE))
    assert not any(cached(cold, 21 * SLICE, FILE))


def test_a_stream_is_read_ahead(cold: File) -> None:
    cold.load(0, SLICE)
    cold.load(SLICE, SLICE)
    ends = (2 + AHEAD) * SLICE
    deadline = time.monotonic() + page_cache.PATIENCE_S
    while not all(cached(cold, 0, ends)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not any(cached(cold, ends, FILE))
    assert not cold.is_loading_due(2 * SLICE, SLICE)
    assert cold.is_loading_due(3 * SLICE, SLICE)  # it is there, what follows is not


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
