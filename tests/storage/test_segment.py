import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import read_header
from kwire.storage import layout
from kwire.storage.cold_reads import ColdRead
from kwire.storage.open_files import OpenFiles
from kwire.storage.received import Placed
from kwire.storage.roll_limits import has_room, waited_to_roll
from kwire.storage.segment import Segment
from kwire.storage.transaction_index import AbortedTransaction

from .support import T0, ManualClock, placed

BASE = 100


def new_segment(files=None, open_files=None, interval=150):
    files = files or MemoryFileSystem()
    files.make_dirs("/d")
    pool = OpenFiles() if open_files is None else open_files
    return Segment.create(files, pool, "/d", BASE, created_ms=T0, index_interval=interval)


def reopened(segment):
    """The same segment as another process finds it."""
    return Segment(
        segment.files,
        OpenFiles(),
        "/d",
        BASE,
        size=segment.size,
        created_ms=T0,
        index_interval=segment.index_interval,
        has_transactions=segment.files.exists(segment.path(layout.TRANSACTION_INDEX)),
    )


def append(segment, offset, count=2, timestamp=T0, padding=0):
    data = placed(offset, ["v" * padding] * count, timestamp=timestamp)
    header = read_header(data)
    segment.append([data], [Placed(header, offset, [data])])
    return offset, offset + count - 1, len(data)


batches = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 300)), max_size=30)


@given(batches, st.booleans(), st.sampled_from([0, 150, 5000]))
def test_find_is_the_first_batch_that_ends_at_or_after(plan, reopen, interval):
    segment = new_segment(interval=interval)
    appended, offset, position = [], BASE, 0
    for gap, count, padding in plan:
        _first, last, size = append(segment, offset + gap, count, padding=padding)
        appended.append((last, position, size))
        offset, position = last + 1, position + size
    if reopen:
        segment.seal()
        segment = reopened(segment)
    for target in range(BASE, offset + 2):
        expected = next(((at, size) for last, at, size in appended if last >= target), None)
        assert segment.find(target) == expected
    assert segment.next_offset() == offset


@given(batches, st.integers(0, 120))
def test_truncation_keeps_the_batches_before(plan, cut):
    segment, again = new_segment(), new_segment()
    offset = BASE
    for gap, count, padding in plan:
        append(segment, offset + gap, count, padding=padding, timestamp=T0 + padding)
        if offset + gap + count <= BASE + cut:
            append(again, offset + gap, count, padding=padding, timestamp=T0 + padding)
        offset += gap + count
    segment.truncate_to(BASE + cut, T0)
    assert segment.file.pread(segment.size, 0) == again.file.pread(again.size, 0)
    assert segment.file.size() == segment.size == again.size
    assert segment.newest == again.newest
    append(segment, BASE + cut + 1)
    assert segment.find(BASE + cut)[0] == again.size


def test_a_failed_write_leaves_the_segment_as_it_was():
    segment = new_segment()
    append(segment, BASE)
    size = segment.size
    segment.files.fault = lambda operation, path, wanted: 30 if operation == "write" else None
    with pytest.raises(OSError, match="No space") as caught:
        append(segment, BASE + 2)
    assert caught.value.errno == errno.ENOSPC
    segment.files.fault = None
    assert segment.size == segment.file.size() == size
    append(segment, BASE + 2)
    assert segment.next_offset() == BASE + 4


def filled(padding=200, interval=150):
    segment = new_segment(interval=interval)
    for i in range(20):
        append(segment, BASE + 2 * i, padding=padding, timestamp=T0 + i)
    segment.seal()
    return segment


@pytest.mark.parametrize("suffix", [layout.OFFSET_INDEX, layout.TIME_INDEX])
@pytest.mark.parametrize("content", [None, b"x", b"\xff" * 24, bytes(24)])
def test_a_missing_or_wrong_index_is_built_anew(suffix, content):
    segment = filled()
    right = {suffix: segment.files.read(segment.path(suffix)) for suffix in (layout.OFFSET_INDEX, layout.TIME_INDEX)}
    found = [segment.find(BASE + i) for i in range(41)]
    if content is None:
        segment.files.remove(segment.path(suffix))
    else:
        segment.files.write_atomically(segment.path(suffix), content)
    segment = reopened(segment)
    assert [segment.find(BASE + i) for i in range(41)] == found
    assert {suffix: segment.files.read(segment.path(suffix)) for suffix in right} == right
    assert segment.newest == (T0 + 20, BASE + 39)


def test_an_index_that_ascends_but_lies_is_noticed():
    segment = filled()
    found = [segment.find(BASE + i) for i in range(41)]
    lies = b"".join((2 * i).to_bytes(4, "big") + (i * 60 + 7).to_bytes(4, "big") for i in range(1, 18))
    segment.files.write_atomically(segment.path(layout.OFFSET_INDEX), lies)
    assert [reopened(segment).find(BASE + i) for i in range(41)] == found
    segment.files.write_atomically(segment.path(layout.OFFSET_INDEX), lies)
    assert reopened(segment).next_offset() == BASE + 40


def test_bytes_that_are_no_batches_are_an_error_not_an_end():
    segment = filled()
    middle = segment.find(BASE + 20)[0]
    segment.file.pwrite([bytes(61)], middle)
    with pytest.raises(CorruptBatchError):
        reopened(segment).find(BASE + 21)


class ColdFile:
    """A file whose bytes are in memory only after they have been read."""

    def __init__(self, file):
        self.file = file
        self.path = file.path
        self.warm = False

    def __getattr__(self, name):
        return getattr(self.file, name)

    def pread(self, size, position):
        self.warm = True
        return self.file.pread(size, position)

    def resident(self, position, size):
        return self.warm

    def read_resident(self, size, position):
        return self.file.read_resident(size, position) if self.warm else None


def test_nothing_cold_is_read_by_who_must_not_block():
    segment = reopened(filled())
    cold = segment._file = ColdFile(segment.file)
    with pytest.raises(ColdRead) as missing_index:
        segment.find(BASE + 21, may_block=False)
    assert not cold.warm
    missing_index.value.missing.warm()
    missing_index.value.missing.done()
    with pytest.raises(ColdRead) as missing_header:
        segment.find(BASE + 21, may_block=False)
    assert not cold.warm
    missing_header.value.missing.warm()
    assert segment.find(BASE + 21, may_block=False) == segment.find(BASE + 21)


def test_indexes_loaded_before_a_truncation_are_not_taken_after_it():
    segment = reopened(filled())
    with pytest.raises(ColdRead) as load:
        segment.find(BASE, may_block=False)
    load.value.missing.warm()
    segment.truncate_to(BASE + 10, T0)
    load.value.missing.done()
    assert segment.find(BASE + 10) is None


def test_a_dropped_segment_opens_again():
    pool = OpenFiles(1)
    files = MemoryFileSystem()
    segment = new_segment(files, pool)
    append(segment, BASE)
    files.make_dirs("/other")
    Segment.create(files, pool, "/other", 0, created_ms=T0, index_interval=0)
    assert segment._file is None
    assert segment.find(BASE) is not None
    append(segment, BASE + 2)
    assert segment.next_offset() == BASE + 4
    assert len(pool) == 1


def test_time_to_roll():
    segment = new_segment()
    clock = ManualClock()
    clock.advance(500)
    assert waited_to_roll(segment, clock, T0) == 500  # by the clock as long as it is empty
    append(segment, BASE, timestamp=T0 + 1000)
    first_newest = T0 + 1001
    assert waited_to_roll(segment, clock, first_newest + 70) == 70
    assert waited_to_roll(reopened(segment), clock, first_newest + 70) == 70


def test_room():
    segment = new_segment(interval=0)
    assert has_room(segment, 100, BASE + 5, 100, 1000)
    assert not has_room(segment, 101, BASE + 5, 100, 1000)
    assert has_room(segment, 100, BASE + 2**31 - 1, 100, 1000)
    assert not has_room(segment, 100, BASE + 2**31, 100, 1000)
    for i in range(3):
        append(segment, BASE + 2 * i, timestamp=T0 + i)
    assert not has_room(segment, 1, BASE + 9, 10_000, 24)


def test_a_preallocated_file_is_cut_when_sealed():
    files = MemoryFileSystem()
    files.make_dirs("/d")
    segment = Segment.create(files, OpenFiles(), "/d", BASE, created_ms=T0, index_interval=0, preallocate=5000)
    append(segment, BASE)
    assert files.file_size(segment.path(layout.LOG)) == 5000
    segment.seal()
    assert files.file_size(segment.path(layout.LOG)) == segment.size


def test_aborted_transactions_are_kept_and_truncated():
    segment = new_segment()
    for i in range(10):
        append(segment, BASE + 2 * i)
    transactions = [AbortedTransaction(7, BASE, BASE + 5, BASE + 6), AbortedTransaction(8, BASE + 2, BASE + 11, BASE)]
    for transaction in transactions:
        segment.add_transaction(transaction)
    assert reopened(segment).transactions() == transactions
    segment.truncate_to(BASE + 8, T0)
    assert segment.transactions() == reopened(segment).transactions() == transactions[:1]


def test_the_newest_timestamp_is_read_from_the_last_entry():
    segment = filled()
    again = reopened(segment)
    assert again.newest is None
    again.newest = again.load_newest()
    assert again.newest == segment.newest == (T0 + 20, BASE + 39)
    again.files.remove(again.path(layout.TIME_INDEX))
    assert again.load_newest() == segment.newest
