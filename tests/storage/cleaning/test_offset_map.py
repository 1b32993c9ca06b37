"""The map of keys to their latest offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.storage.cleaning.offset_map import BYTES_PER_PLACE, NO_OFFSET, OffsetMap

SECRET = b"secret"


@given(st.lists(st.binary(max_size=20)), st.sampled_from([0.5, 0.9, 1.0]))
def test_it_knows_the_latest_offset_of_each_key(keys: list[bytes], load_factor: float) -> None:
    offsets = OffsetMap(1 << 20, max(1, len(keys)), load_factor, SECRET)
    expected = {}
    for offset, key in enumerate(keys):
        assert not offsets.full
        offsets.put(key, offset)
        expected[key] = offset
    assert len(offsets) == len(expected)
    assert {key: offsets.get(key) for key in expected} == expected
    assert offsets.get(b"a key that is longer than twenty bytes") == NO_OFFSET


@pytest.mark.parametrize("places", [1, 2, 3, 4, 10, 100, 1000])
@pytest.mark.parametrize("load_factor", [0.0, 0.5, 0.9, 1.0, 7.0])
def test_it_takes_no_more_memory_than_it_may(places: int, load_factor: float) -> None:
    """And at least one key, however little that is."""
    offsets = OffsetMap(places * BYTES_PER_PLACE, 1 << 40, load_factor, SECRET)
    count = 0
    while not offsets.full:
        offsets.put(b"%d" % count, count)
        count += 1
    assert 1 <= count <= max(places * min(load_factor, 1), 2)
    assert [offsets.get(b"%d" % number) for number in range(count)] == list(range(count))
    assert offsets.get(b"none of them") == NO_OFFSET
    assert sum(map(len, (offsets._hashes, memoryview(offsets._offsets).cast("B")))) <= max(places, 3) * BYTES_PER_PLACE


def test_a_full_map_still_learns_of_keys_it_knows() -> None:
    offsets = OffsetMap(3 * BYTES_PER_PLACE, 100, 0.9, SECRET)
    offsets.put(b"a", 0)
    offsets.put(b"b", 1)
    assert offsets.full
    offsets.put(b"a", 2)
    assert (offsets.get(b"a"), offsets.get(b"b")) == (2, 1)
