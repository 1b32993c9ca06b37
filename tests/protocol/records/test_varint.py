"""Zigzag varints: round trips, the longest, the too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records.varint import encode_varint, read_varint, read_varlong


@given(st.integers(-(2**31), 2**31 - 1))
def test_varint_round_trip(value: int) -> None:
    encoded = encode_varint(value)
    assert len(encoded) <= 5
    assert read_varint(b"\xff" + encoded + b"\xff", 1) == (value, 1 + len(encoded))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlong_round_trip(value: int) -> None:
    encoded = encode_varint(value)
    assert len(encoded) <= 10
    assert read_varlong(encoded, 0) == (value, len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (8191, "fe7f"),
        (8192, "808001"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_bytes(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert read_varlong(bytes.fromhex(encoded), 0)[0] == value


def test_bits_beyond_an_int32_are_dropped() -> None:
    assert read_varint(b"\xfe\xff\xff\xff\x7f", 0) == (2**31 - 1, 5)


def test_too_long() -> None:
    with pytest.raises(CorruptBatchError):
        read_varint(b"\x80" * 5 + b"\x00", 0)
    with pytest.raises(CorruptBatchError):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


def test_cut_short() -> None:
    with pytest.raises(IndexError):
        read_varint(b"\x80\x80", 0)
    with pytest.raises(IndexError):
        read_varlong(b"", 0)
