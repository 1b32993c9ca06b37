"""Unsigned varints of the wire, as plain Python and compiled."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.codec.errors import MalformedError
from kwire.protocol.codec.varints import read_long_varint, read_varint, varint

BUFFERS: list[Callable[[bytes], bytes | memoryview]] = [bytes, memoryview]


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "80 01"),
        (16_383, "ff 7f"),
        (16_384, "80 80 01"),
        (2_097_151, "ff ff 7f"),
        (2_097_152, "80 80 80 01"),
        (0xFFFFFFFF, "ff ff ff ff 0f"),
    ],
)
def test_as_protocol_buffers_has_them(value: int, encoded: str) -> None:
    assert varint(value) == bytes.fromhex(encoded)


@pytest.mark.parametrize("buffer", BUFFERS)
@given(value=st.integers(0, 0xFFFFFFFF), before=st.binary(max_size=3), behind=st.binary(max_size=3))
def test_what_was_written_is_read(
    buffer: Callable[[bytes], bytes | memoryview], value: int, before: bytes, behind: bytes
) -> None:
    written = buffer(before + varint(value) + behind)
    at, end = len(before), len(written) - len(behind)
    assert read_varint(written, at) == (value, end)
    if value > 127:
        assert read_long_varint(written, at + 1) == (value, end)


@pytest.mark.parametrize("buffer", BUFFERS)
@given(value=st.integers(128, 0xFFFFFFFF), data=st.data())
def test_one_that_is_cut_off(buffer: Callable[[bytes], bytes | memoryview], value: int, data: st.DataObject) -> None:
    whole = varint(value)
    cut = buffer(whole[: data.draw(st.integers(1, len(whole) - 1))])
    for read, at in ((read_varint, 0), (read_long_varint, 1)):
        with pytest.raises(IndexError):
            read(cut, at)


@pytest.mark.parametrize(
    ("encoded", "why"),
    [("ff ff ff ff ff 01", "more than five bytes"), ("ff ff ff ff 1f", "more than 32 bits")],
)
def test_one_that_is_too_large(encoded: str, why: str) -> None:
    for read, at in ((read_varint, 0), (read_long_varint, 1)):
        with pytest.raises(MalformedError, match=why):
            read(bytes.fromhex(encoded), at)
