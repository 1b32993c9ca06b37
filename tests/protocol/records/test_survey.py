"""The quick look at records that may be wrong, against the one that says what is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records.builder import build_batch, encode_record
from kwire.protocol.records.header import HEADER_SIZE, read_header
from kwire.protocol.records.record import Record, scan
from kwire.protocol.records.survey import Survey, survey

# On both sides of where a varint takes another byte.
SIZES = st.sampled_from([0, 1, 50, 63, 64, 200, 8100])
BYTES = st.none() | SIZES.map(bytes)
TIMES = st.sampled_from([-1, 0, 63, 64, 8191, 8192, 2**40])
HEADERS = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
RECORDS = st.lists(st.tuples(TIMES, st.none() | st.binary(max_size=70), BYTES, HEADERS), min_size=1, max_size=4)


def scanned(data: bytes, count: int) -> Survey | None:
    """What `scan` says of them."""
    try:
        found = list(scan(data, count))
    except CorruptBatchError:
        return None
    if [offset for _, offset, *_ in found] != list(range(count)):
        return None
    times = [time for time, *_ in found]
    return Survey(times[0], min(times), max(times), any(key_length < 0 for _, _, _, key_length, *_ in found))


@given(RECORDS)
def test_it_finds_what_is_found_by_looking_at_everything(drawn: list[tuple]) -> None:
    batch = build_batch([Record(offset, *parts) for offset, parts in enumerate(drawn)])
    data, count = batch[HEADER_SIZE:], read_header(batch).count
    found = survey(data, count)
    assert found == scanned(data, count)
    assert found is not None


def test_many_records_with_deltas_of_two_bytes() -> None:
    data = b"".join(encode_record(-offset, offset, b"k", None) for offset in range(300))
    assert survey(data, 300) == scanned(data, 300) == Survey(0, -299, 0, keyless=False)


@given(RECORDS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), max_size=2), st.integers(-1, 1))
@example([(0, None, None, [])], [(0, 1)], 0)
@example([(0, b"k", b"v", [])], [], -1)
def test_nothing_is_right_that_is_wrong_to_who_looks_at_everything(
    drawn: list[tuple], changes: list[tuple[int, int]], more: int
) -> None:
    batch = build_batch([Record(offset, *parts) for offset, parts in enumerate(drawn)])
    data = bytearray(batch[HEADER_SIZE:])
    for place, value in changes:
        data[place % len(data)] = value
    count = len(drawn) + more
    found = survey(bytes(data), count)
    assert found is None or found == scanned(bytes(data), count)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(encode_record(0, 0, b"k", bytes(8192)), id="a record of more than 8 KiB"),
        pytest.param(encode_record(0, 1, b"k", b"v"), id="another offset"),
        pytest.param(encode_record(0, 0, b"k", b"v")[:-1], id="a byte too few"),
        pytest.param(encode_record(0, 0, b"k", b"v") + b"\0", id="a byte too many"),
        pytest.param(b"\xff" * 20, id="a varint without end"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_left_to_who_looks_at_everything(data: bytes) -> None:
    assert survey(data, 1) is None
