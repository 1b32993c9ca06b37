"""The map of keys to their latest offsets, and what it marks of the records that it was told of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import BatchHeader, read_header
from kwire.protocol.records.record import Record
from kwire.protocol.records.skim import Skimmed
from kwire.storage.cleaning.offset_map import BYTES_PER_PLACE, OffsetMap

SECRET = b"secret"
BIG = 1 << 20

KEYS = st.none() | st.binary(max_size=2) | st.binary(max_size=20)


def batch(base_offset: int, keys: list[bytes | None], nulls: frozenset[int] = frozenset()) -> BatchHeader:
    """Its header."""
    records = [
        Record(base_offset + number, 0, key, None if number in nulls else b"v", []) for number, key in enumerate(keys)
    ]
    return read_header(build_batch(records, base_offset=base_offset))


def skimmed(keys: list[bytes | None], nulls: frozenset[int] = frozenset()) -> list[Skimmed]:
    return [(0, 0, 0, number, key, number in nulls) for number, key in enumerate(keys)]


def put(offsets: OffsetMap, base_offset: int, keys: list[bytes | None], nulls: frozenset[int] = frozenset()) -> bool:
    done = offsets.put(batch(base_offset, keys, nulls), skimmed(keys, nulls))
    if done:
        offsets.latest_offset = base_offset + len(keys) - 1
    return done


def stays(offsets: OffsetMap, key: bytes | None, offset: int, **options: bool) -> bool:
    return bool(offsets.latest(batch(offset, [key]), skimmed([key]), **options))


def latest(offsets: OffsetMap, key: bytes) -> int | None:
    """The key's latest offset by what the map lets stay; None where it knows none."""
    return next((at for at in range(offsets.latest_offset + 1) if stays(offsets, key, at)), None) or None


@given(st.lists(st.lists(KEYS, min_size=1, max_size=12), max_size=8), st.sampled_from([0.5, 0.9, 1.0]))
def test_it_knows_the_latest_offset_of_each_key(batches: list[list[bytes | None]], load_factor: float) -> None:
    keys = [key for part in batches for key in part]
    offsets = OffsetMap(BIG, max(1, len(keys)), load_factor, SECRET, 100)
    headers, at = [], 100
    for part in batches:
        assert put(offsets, at, part)
        headers.append(batch(at, part))
        at += len(part)
    expected = {key: number for number, key in enumerate(keys, 100) if key is not None}
    assert len(offsets) == len(expected)
    assert {key: latest(offsets, key) for key in expected} == expected
    assert stays(offsets, b"a key that is longer than twenty bytes", 0)
    assert not stays(offsets, None, 0)
    assert stays(offsets, None, 100 + len(keys))
    for header in headers:
        assert offsets.has_marks(header)
        superseded, tombstones = offsets.marks.of(header.base_offset, header.last_offset)
        for offset in range(header.base_offset, header.next_offset):
            key = keys[offset - 100]
            assert superseded & 1 == (key is None or expected[key] != offset)
            superseded >>= 1
        assert not superseded
        assert not tombstones


def test_tombstones_are_marked() -> None:
    offsets = OffsetMap(BIG, 100, 0.9, SECRET, 5)
    put(offsets, 5, [b"a", b"b", b"c"], frozenset({1}))
    put(offsets, 8, [b"b", b"d", b"a"], frozenset({0, 1}))
    assert offsets.marks.of(5, 7) == (0b011, 0b010)
    assert offsets.marks.of(8, 10) == (0b000, 0b011)


def test_tombstones_may_go_where_the_map_knows_all_keys() -> None:
    offsets = OffsetMap(BIG, 100, 0.9, SECRET)
    put(offsets, 0, [b"a", b"b"], frozenset({1}))
    for offset, left in ((0, [b"a"]), (2, [b"a", b"b"])):
        found = offsets.latest(batch(offset, [b"a", b"b"]), skimmed([b"a", b"b"], frozenset({1})), tombstones_go=True)
        assert [key for _, _, _, _, key, _ in found] == left


def test_what_is_before_the_start_is_not_put() -> None:
    offsets = OffsetMap(BIG, 100, 0.9, SECRET, 2)
    put(offsets, 0, [b"a", b"b", b"c"])
    assert [latest(offsets, key) for key in (b"a", b"b", b"c")] == [None, None, 2]
    assert not offsets.has_marks(batch(0, [b"a", b"b", b"c"]))


def test_what_lies_beyond_the_latest_offset_has_no_marks() -> None:
    offsets = OffsetMap(10 * BYTES_PER_PLACE, 1000, 0.9, SECRET)
    assert put(offsets, 0, [b"a", b"b"])
    keys = [b"%d" % number for number in range(20)]
    assert not put(offsets, 2, keys)
    assert 2 < offsets.latest_offset == 1 + len(offsets) - 2
    assert offsets.has_marks(batch(0, [b"a", b"b"]))
    assert not offsets.has_marks(batch(2, keys))


@pytest.mark.parametrize("deltas", [[0, 0], [1, 0], [0, 2]])
def test_records_that_are_not_where_their_header_says_have_no_marks(deltas: list[int]) -> None:
    """Nor has what follows."""
    offsets = OffsetMap(BIG, 100, 0.9, SECRET)
    put(offsets, 0, [b"a", b"b"])
    header = batch(2, [b"c", b"d"])
    assert offsets.put(header, [(0, 0, 0, delta, b"%d" % number, True) for number, delta in enumerate(deltas)])
    put(offsets, 4, [b"a", b"b"])
    assert offsets.has_marks(batch(0, [b"a", b"b"]))
    assert offsets.marks.of(0, 1) == (0b11, 0)
    assert not offsets.has_marks(header)
    assert not offsets.has_marks(batch(4, [b"a", b"b"]))


@pytest.mark.parametrize("places", [1, 2, 3, 4, 10, 100, 1000])
@pytest.mark.parametrize("load_factor", [0.0, 0.5, 0.9, 1.0, 7.0])
def test_it_takes_no_more_memory_than_it_may(places: int, load_factor: float) -> None:
    """And at least one key, however little that is."""
    offsets = OffsetMap(places * BYTES_PER_PLACE, 1 << 40, load_factor, SECRET)
    count = 0
    while put(offsets, count, [b"%d" % count]):
        count += 1
    assert offsets.full
    assert 1 <= count <= max(places * min(load_factor, 1), 2)
    for number in range(count):
        assert stays(offsets, b"%d" % number, number)
        assert not number or not stays(offsets, b"%d" % number, number - 1)
    assert stays(offsets, b"none of them", 0)
    marks = offsets.marks
    taken = offsets._table.nbytes + len(marks.superseded) + len(marks.tombstones)
    assert taken <= (places if places > 3 else 4) * BYTES_PER_PLACE


def test_offsets_that_are_too_far_away_are_left_to_the_next_cleaning() -> None:
    offsets = OffsetMap(BIG, 1 << 50, 0.9, SECRET, 5)
    far = 5 + (1 << 40) - (1 << 32)
    assert put(offsets, far - 1, [b"a"])
    assert stays(offsets, b"a", far - 1)
    assert not stays(offsets, b"a", far - 2)
    assert not put(offsets, far, [b"b"])


def test_a_full_map_still_learns_of_keys_it_knows() -> None:
    offsets = OffsetMap(3 * BYTES_PER_PLACE, 100, 0.9, SECRET)
    put(offsets, 0, [b"a", b"b"])
    assert offsets.full
    assert put(offsets, 2, [b"a"])
    assert (latest(offsets, b"a"), latest(offsets, b"b")) == (2, 1)
    assert not put(offsets, 3, [b"c"])
