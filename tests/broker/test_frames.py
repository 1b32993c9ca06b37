"""Frames come out whole and once, however the stream is cut into chunks."""

from __future__ import annotations

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from kwire.broker.frames import FrameReader


def framed(*bodies: bytes) -> bytes:
    return b"".join(pack(">i", len(body)) + body for body in bodies)


@given(st.lists(st.binary(max_size=40), max_size=12), st.lists(st.integers(1, 30), min_size=1, max_size=80))
def test_any_cut_of_the_stream_gives_the_same_frames(bodies: list[bytes], cuts: list[int]) -> None:
    stream = framed(*bodies)
    reader = FrameReader(1000)
    out: list[bytes] = []
    position, turn = 0, 0
    while position < len(stream):
        step = cuts[turn % len(cuts)]
        out += [bytes(frame) for frame in reader.feed(stream[position : position + step])]
        position, turn = position + step, turn + 1
    assert out == bodies
    assert reader.error is None
    assert reader.held == 0
    assert reader.missing == 0


def test_a_frame_above_the_limit_ends_the_reading_after_the_frames_before_it() -> None:
    reader = FrameReader(10)
    frames = reader.feed(framed(b"first") + pack(">i", 11))
    assert [bytes(frame) for frame in frames] == [b"first"]
    assert reader.error == "a frame of 11 bytes was announced, 0 to 10 are allowed"


def test_a_negative_size_ends_the_reading() -> None:
    reader = FrameReader(10)
    assert reader.feed(pack(">i", -1)) == []
    assert reader.error is not None


def test_only_arrived_bytes_are_held_of_a_large_frame() -> None:
    reader = FrameReader(100_000_000)
    assert reader.feed(pack(">i", 90_000_000) + b"abc") == []
    assert reader.held == 7
    assert reader.missing == 90_000_000 - 3


def test_missing_counts_down_across_chunks() -> None:
    reader = FrameReader(100)
    reader.feed(pack(">i", 6) + b"ab")
    assert reader.missing == 4
    reader.feed(b"cd")
    assert reader.missing == 2
    assert [bytes(frame) for frame in reader.feed(b"ef")] == [b"abcdef"]
