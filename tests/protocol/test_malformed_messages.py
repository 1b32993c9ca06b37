"""Bytes that are no message: MalformedError and nothing else, and no memory for what was only announced."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kwire.protocol import codec
from kwire.protocol.codec import reference
from kwire.protocol.codec.errors import MalformedError
from kwire.protocol.schema import Message, Struct
from tests.protocol.any_message import any_message

_HUGE = [
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x80\x80\x80\x80\x10",
    b"\xff\xff\xff\xfe",
    b"\x80\0\0\0",
]


def _outcome(decode: Any, message: type[Message], version: int, data: bytes) -> Any:
    """What the decoder makes of `data`, comparable; "refused" if it raises MalformedError."""
    try:
        return _plain(decode(message, version, data))
    except MalformedError:
        return "refused"


def _plain(value: Any) -> Any:
    """A value in which NaN equals itself."""
    if isinstance(value, Struct):
        return [_plain(getattr(value, field.name)) for field in value.declared_fields], value.unknown_tags
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return struct.pack(">d", value) if isinstance(value, float) else value


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_message_cut_short_is_refused(message: type[Message], version: int, data: st.DataObject) -> None:
    encoded = codec.encode(data.draw(any_message(message, version)), version)
    for length in {*range(min(len(encoded), 60)), len(encoded) // 2, max(len(encoded) - 1, 0)} - {len(encoded)}:
        with pytest.raises(MalformedError):
            codec.decode(message, version, encoded[:length])


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_construct_and_the_generated_code_refuse_the_same_bytes(
    message: type[Message], version: int, data: st.DataObject
) -> None:
    piece = st.sampled_from(_HUGE) | st.binary(max_size=12) | st.sampled_from([b"\0", b"\x01", b"\x02", b"\0\x01"])
    if data.draw(st.booleans()):
        raw = b"".join(data.draw(st.lists(piece, max_size=8)))
    else:
        raw = codec.encode(data.draw(any_message(message, version)), version)
        at = data.draw(st.integers(0, len(raw)))
        raw = raw[:at] + data.draw(piece) + raw[at + data.draw(st.integers(0, 2)) :]
    expected = _outcome(reference.decode, message, version, raw)
    assert _outcome(codec.decode, message, version, raw) == expected


def test_nothing_is_allocated_for_an_absurd_count(message: type[Message], version: int) -> None:
    _outcome(codec.decode, message, version, b"")
    tracemalloc.start()
    try:
        for huge in _HUGE:
            for lead in range(0, 24):
                _outcome(codec.decode, message, version, b"\0" * lead + huge * 8)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
