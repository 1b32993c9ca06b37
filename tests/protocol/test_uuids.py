"""Uuids in bytes and in text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol import uuids


@given(st.binary(min_size=16, max_size=16))
def test_text_and_bytes_go_both_ways(uuid: bytes) -> None:
    text = uuids.to_text(uuid)
    assert len(text) == 22
    assert uuids.from_text(text) == uuid


def test_the_text_is_kafkas() -> None:
    assert uuids.to_text(uuids.ZERO) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuids.to_text(bytes([0] * 15 + [1])) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuids.to_text(b"\xfb\xff" * 8) == "-__7__v_-__7__v_-__7_w"


@pytest.mark.parametrize(
    "text", ["", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAA!A", "é" * 22, "+" * 22, "/" * 22]
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a uuid"):
        uuids.from_text(text)
