"""Reads of what is not in the page cache: never on the event loop's thread."""

import gc
import os
import sys
import threading
import time
from contextlib import suppress

import pytest

from kwire.ports.at_once import NEEDS_TASK, go_on, step
from kwire.ports.executor import ThreadExecutor
from kwire.ports.files import FileSlice
from kwire.ports.real_files import PosixFile, PosixFileSystem
from kwire.protocol.records.header import iter_batches
from kwire.storage.cold_reads import ColdRead

from .. import page_cache
from .support import T0, Place, append


class WatchedFile(PosixFile):
    """Notes who reads what: (the thread, whether it was in the page cache)."""

    __slots__ = ("reads",)

    def pread(self, size, position):
        self.reads.append((threading.get_ident(), self.resident(position, size)))
        return super().pread(size, position)


class WatchedFiles(PosixFileSystem):
    def __init__(self):
        self.reads = []

    def open(self, path, *, create=False):
        file = WatchedFile(path, os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644))
        file.reads = self.reads
        return file

    def read(self, path):
        self.reads.append((threading.get_ident(), False))
        return super().read(path)


def evict(folder):
    """What is left of the test otherwise proves nothing."""
    for name in os.listdir(folder):
        page_cache.evict(f"{folder}/{name}")


@pytest.fixture
async def place(tmp_path):
    """A log on a real disk, of several segments of 40 batches of 8 KiB, closed again."""
    place = Place(WatchedFiles(), str(tmp_path), segment_bytes=330_000, index_interval_bytes=40_000)
    place.executor = ThreadExecutor(2)
    log = place.open()
    for i in range(200):
        await append(log, "x" * 8000, timestamp=T0 + i)
    await log.close()
    return place


def cold_reads_here(place):
    """Reads on this thread of what was not in the page cache."""
    return [where for where, warm in place.files.reads if where == threading.get_ident() and not warm]


async def test_a_cold_fetch_is_read_by_a_worker_thread(place):
    known = [bytes(place.open().read(offset, 100_000).slice.read()) for offset in (3, 77, 111, 199)]
    for offset, expected in zip((3, 77, 111, 199), known, strict=True):
        log = place.open()
        evict(log.dir)
        place.files.reads.clear()
        found = await log.fetch(offset, 100_000)
        assert cold_reads_here(place) == []
        assert place.files.reads  # the worker's
        assert found.slice.read() == expected
        assert next(iter_batches(found.slice.read()))[0].base_offset == offset


async def test_a_fetch_that_waits_for_the_disk_leaves_no_error_behind(place):
    """It would be the context of all errors to come, and keep the file of what is deleted."""
    log = place.open()
    evict(log.dir)
    work = log.fetch(111, 100_000)
    assert step(work) is NEEDS_TASK
    assert sys.exc_info() == (None, None, None)
    assert not [each for each in gc.get_objects() if isinstance(each, ColdRead)]
    assert (await go_on(work)).slice is not None


async def test_headers_that_were_read_do_not_speak_for_what_is_between(place, monkeypatch):
    """The first batch and the one that bounds the read are looked for, and are in memory before the rest is."""
    log = place.open()
    part = (await log.fetch(3, 50_000)).slice
    evict(log.dir)
    looks = page_cache.Looks(monkeypatch)
    looks.cold_page = part.position // page_cache.PAGE  # else a disk may be so fast that nothing seems to be cold
    run = log.services.executor.run

    async def run_and_have_it_warm(function, *arguments):
        done = await run(function, *arguments)
        looks.cold_page = None
        return done

    monkeypatch.setattr(log.services.executor, "run", run_and_have_it_warm)
    found = await log.fetch(3, 100_000, upto=13)
    assert looks.cold_page is None
    part = found.slice
    pages = page_cache.pages_cached(part.file)
    assert all(pages[part.position // page_cache.PAGE : -(-(part.position + part.size) // page_cache.PAGE)])


async def test_what_was_evicted_while_the_log_is_open(place):
    log = place.open()
    assert await log.fetch(100, 50_000)
    evict(log.dir)
    place.files.reads.clear()
    found = await log.fetch(101, 50_000)
    assert cold_reads_here(place) == []
    part = found.slice
    assert part.file.resident(part.position, part.size)
    # What was read may still bring pages in that lie ahead.
    deadline = time.monotonic() + page_cache.PATIENCE_S
    evict(log.dir)
    while part.file.resident(part.position, part.size):
        assert time.monotonic() < deadline
        evict(log.dir)


async def test_looking_up_a_time_reads_in_a_worker_thread(place):
    log = place.open()
    evict(log.dir)
    place.files.reads.clear()
    assert await log.offset_for_timestamp(T0 + 150) == (T0 + 150, 150, 0)
    assert await log.max_timestamp_offset() == (T0 + 199, 199, 0)
    assert threading.get_ident() not in {where for where, _ in place.files.reads}


async def test_retention_reads_in_a_worker_thread(place):
    log = place.open(high_watermark=200)
    evict(log.dir)
    place.files.reads.clear()
    assert await log.delete_old_segments(T0 + 604_800_000 + 100) == 2
    assert threading.get_ident() not in {where for where, _ in place.files.reads}


async def test_a_file_system_that_cannot_tell_costs_one_visit_to_a_worker_thread_a_step(place, monkeypatch):
    monkeypatch.setattr(PosixFile, "resident", lambda self, position, size: False)
    log = place.open()
    calls = []
    run = log.services.executor.run

    async def counted(function, *arguments):
        calls.append(function)
        return await run(function, *arguments)

    monkeypatch.setattr(log.services.executor, "run", counted)
    found = await log.fetch(77, 100_000)
    assert found == log.read(77, 100_000)
    assert len(calls) <= 3  # the index, the headers, the slice


async def test_a_slice_outlives_its_segment(place):
    log = place.open(high_watermark=200)
    found = await log.fetch(0, 50_000)
    expected = found.slice.read()
    descriptor = found.slice.file.fileno()
    log.advance_log_start(200)
    await log.delete_old_segments(T0)
    place.clock.advance(60_000)
    await place.services.chores.finish_due()
    assert not [name for name in place.names() if name.endswith(".deleted")]
    for i in range(50):  # whoever opens a file now must not get the number of the waiting one
        place.files.open(f"{log.dir}/other-{i}", create=True)
    assert isinstance(found.slice, FileSlice)
    assert found.slice.file.fileno() == descriptor
    assert found.slice.read() == expected


@pytest.mark.usefixtures("no_collector")
async def test_a_segment_that_was_read_cold_gives_its_bytes_back_when_it_is_removed(place, monkeypatch):
    monkeypatch.setattr(PosixFile, "resident", lambda self, position, size: False)
    log = place.open(high_watermark=200)
    assert await log.fetch(3, 50_000)  # the index is read first, then headers
    descriptor = log.segments[0].file.fileno()
    inode = os.fstat(descriptor).st_ino
    log.advance_log_start(200)
    await log.delete_old_segments(T0)
    place.clock.advance(60_000)
    await place.services.chores.finish_due()
    with suppress(OSError):  # closed, and nobody has the number again
        assert os.fstat(descriptor).st_ino != inode
