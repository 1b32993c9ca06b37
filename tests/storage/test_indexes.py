import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.ports.memory_files import MemoryFileSystem
from kwire.storage.offset_index import OffsetIndex
from kwire.storage.segment_indexes import SegmentIndexes
from kwire.storage.sparse_index import WRITE_BEHIND_ENTRIES, CorruptIndex
from kwire.storage.time_index import NO_TIMESTAMP, TimeIndex
from kwire.storage.transaction_index import AbortedTransaction, decode_transactions, overlapping

BASE = 1000


def column(top):
    return st.lists(st.integers(0, top), unique=True, max_size=40).map(sorted)


entries = st.tuples(column(2**31 - 1), column(2**31 - 1)).map(lambda pair: list(zip(*pair, strict=False)))


def offset_index(pairs):
    index = OffsetIndex(BASE)
    for offset, position in pairs:
        index.append(BASE + offset, position)
    return index


def time_index(pairs):
    index = TimeIndex(BASE)
    for timestamp, offset in pairs:
        index.maybe_append(timestamp, BASE + offset)
    return index


@given(entries, st.integers(-5, 2**31))
def test_offset_floor_is_the_last_entry_not_above(pairs, target):
    below = [(BASE + offset, position) for offset, position in pairs if offset <= target]
    assert offset_index(pairs).floor(BASE + target) == (below[-1] if below else (BASE, 0))


@given(entries, st.integers(0, 2**31))
def test_offset_at_or_after_a_position(pairs, position):
    after = [BASE + offset for offset, at in pairs if at >= position]
    assert offset_index(pairs).offset_at_or_after(position) == (after[0] if after else None)


@given(entries, st.integers(-5, 2**31))
def test_time_floor_is_the_last_entry_not_newer(pairs, target):
    below = [(timestamp, BASE + offset) for timestamp, offset in pairs if timestamp <= target]
    assert time_index(pairs).floor(target) == (below[-1] if below else (NO_TIMESTAMP, BASE))


@given(entries, st.integers(-5, 2**31))
def test_truncation_drops_from_the_offset_on(pairs, target):
    index = offset_index(pairs)
    index.truncate_to(BASE + target)
    assert index.encode() == offset_index([pair for pair in pairs if pair[0] < target]).encode()
    times = time_index(pairs)
    times.truncate_to(BASE + target)
    assert times.encode() == time_index([pair for pair in pairs if pair[1] < target]).encode()


@given(entries)
def test_the_files_are_kafkas(pairs):
    assert offset_index(pairs).encode() == b"".join(struct.pack(">II", *pair) for pair in pairs)
    assert OffsetIndex.decode(BASE, offset_index(pairs).encode()).encode() == offset_index(pairs).encode()
    assert time_index(pairs).encode() == b"".join(struct.pack(">qI", *pair) for pair in pairs)
    assert TimeIndex.decode(BASE, time_index(pairs).encode()).encode() == time_index(pairs).encode()
    assert TimeIndex.decode_last(BASE, time_index(pairs).encode()[-12:]) == time_index(pairs).last


@given(st.binary(max_size=100))
def test_garbage_is_refused_or_taken_as_ascending(data):
    for decode in (OffsetIndex.decode, TimeIndex.decode):
        try:
            index = decode(BASE, data)
        except CorruptIndex:
            continue
        columns = list(zip(*(index.entry(i) for i in range(len(index))), strict=True))
        assert all(list(values) == sorted(set(values)) for values in columns)


@pytest.mark.parametrize("index", [offset_index([(5, 100), (9, 300)]), time_index([(5, 100), (9, 300)])])
def test_the_file_follows_the_entries(index):
    files = MemoryFileSystem()
    files.make_dirs("/d")
    index.persist(files, "/d/i")
    assert files.read("/d/i") == index.encode()
    assert index.settled
    index.truncate_to(BASE + 6)
    assert not index.settled or len(index) == 2
    index.truncate_to(BASE)
    add = getattr(index, "append", None) or index.maybe_append
    add(BASE + 50, 1000 if add.__name__ == "append" else BASE + 60)
    assert not index.settled
    index.persist(files, "/d/i")
    assert files.read("/d/i") == index.encode()
    assert len(index) == 1


def test_a_time_index_takes_only_what_is_newer_and_later():
    index = time_index([(-1, 0), (5, 1), (5, 2), (4, 3), (6, 1), (7, 9)])
    assert [index.entry(i) for i in range(len(index))] == [(5, BASE + 1), (7, BASE + 9)]


def test_a_full_index():
    index = offset_index([(1, 10), (2, 20)])
    assert index.is_full(16)
    assert index.is_full(23)
    assert not index.is_full(24)
    assert index.is_full(24, reserved=1)


def test_aborted_transactions():
    first = AbortedTransaction(7, 1000, 1010, 1005)
    second = AbortedTransaction(8, 1005, 1020, 1021)
    data = first.encode() + second.encode()
    assert len(data) == 68
    assert decode_transactions(data, BASE) == [first, second]
    assert overlapping([first, second], 1000, 1004) == ([first], True)
    assert overlapping([first, second], 1011, 1030) == ([second], False)
    with pytest.raises(CorruptIndex):
        decode_transactions(data, 1011)
    with pytest.raises(CorruptIndex):
        decode_transactions(b"\x00\x01" + data[2:], BASE)
    with pytest.raises(CorruptIndex):
        decode_transactions(data + b"torn", BASE)
    with pytest.raises(CorruptIndex):
        decode_transactions(bytes(34), 0)


def test_a_write_is_due_when_many_entries_wait():
    indexes = SegmentIndexes.empty(BASE)
    files = MemoryFileSystem()
    files.make_dirs("/d")
    indexes.add(BASE, 1, 0, 10, 0)  # the first batch of a segment gets no entry
    for _ in range(2):
        count = len(indexes.offsets)
        due = [
            indexes.add(BASE + number, number, 10 * number, 10, 0)
            for number in range(count + 1, count + WRITE_BEHIND_ENTRIES + 1)
        ]
        assert due == [False] * (WRITE_BEHIND_ENTRIES - 1) + [True]
        indexes.persist(files, "/d/s")
