"""The quick way through a batch's records, against the one that looks at everything."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records.builder import build_batch, encode_record
from kwire.protocol.records.header import HEADER_SIZE, read_header
from kwire.protocol.records.record import Record, scan
from kwire.protocol.records.skim import extents, skim, timestamp_delta_at

# Lengths and deltas on both sides of where a varint takes another byte.
SIZES = st.sampled_from([0, 1, 50, 63, 64, 200, 8191, 8192, 20_000])
BYTES = st.none() | SIZES.map(bytes)
DELTAS = st.sampled_from([0, 1, 63, 64, 8191, 8192, 2**31 - 1])
TIMES = st.sampled_from([-1, 0, 63, 64, 8191, 8192, 2**40])
HEADERS = st.lists(st.tuples(st.text(max_size=3), BYTES), max_size=2)


@given(st.dictionaries(DELTAS, st.tuples(TIMES, BYTES, BYTES, HEADERS), min_size=1, max_size=4))
def test_it_finds_what_is_found_by_looking_at_everything(drawn: dict[int, tuple]) -> None:
    batch = build_batch([Record(delta, *parts) for delta, parts in sorted(drawn.items())])
    data, count = batch[HEADER_SIZE:], read_header(batch).count
    start = 0
    for skimmed, extent, scanned in zip(skim(data, count), extents(data, count), scan(data, count), strict=True):
        timestamp_delta, offset_delta, key_at, key_length, _, value_length, _, _, end = scanned
        key = None if key_length < 0 else data[key_at : key_at + key_length]
        assert skimmed == (start, end, timestamp_delta, offset_delta, key, value_length < 0)
        assert (extent[0], extent[2]) == (start, end)
        assert timestamp_delta_at(data, extent[1]) == timestamp_delta
        start = end


@given(st.lists(st.integers(0, 255) | st.sampled_from([0, 1, 2, 12, 14, 16, 128, 255]), max_size=60).map(bytes))
def test_garbage_raises_only_our_error(data: bytes) -> None:
    for count in (-1, 0, 1, 2, 5):
        for walk in (skim, extents):
            with suppress(CorruptBatchError):
                previous = 0
                for start, *_ in walk(data, count):
                    assert start >= previous
                    previous = start + 1


@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param(b"\x0e\x00\x00\x00\x7e\x01\x00\x00", 1, id="key longer than the record"),
        pytest.param(b"\x0a\x00\x00\x00\x02k", 1, id="nothing after the key"),
        pytest.param(b"\x01" + bytes(20), 1, id="negative length"),
        pytest.param(b"\x81\x00" + bytes(20), 1, id="negative length in two bytes"),
        pytest.param(b"\xff\xff\xff\xff\x0f" + bytes(20), 1, id="negative length in five bytes"),
        pytest.param(b"\xff" * 20, 1, id="varint without end"),
        pytest.param(b"", 1, id="nothing"),
        pytest.param(b"\0", 0, id="a byte too many"),
    ],
)
def test_records_that_do_not_fit(data: bytes, count: int) -> None:
    with pytest.raises(CorruptBatchError):
        list(skim(data, count))


def test_a_null_key_in_more_bytes_than_it_takes_is_null() -> None:
    record = encode_record(0, 0, None, b"v", [])
    assert record[4] == 1
    longer = bytes([record[0] + 2]) + record[1:4] + b"\x81\x00" + record[5:]
    ((_, _, _, _, key, null),) = skim(longer, 1)
    assert (key, null) == (None, False)
