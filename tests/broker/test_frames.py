"""Frames come out whole and once, however the stream is cut into chunks."""

from __future__ import annotations

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from kwire.broker.frames import BEGUN, LARGE, FrameReader
from kwire.broker.receive_buffers import BUFFER_BYTES, MOST_BUFFERS, ReceiveBuffers


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


LARGE_BODIES = st.lists(st.sampled_from([0, 1, 50_000, LARGE - 5, LARGE - 4, 300_000, BUFFER_BYTES]), max_size=5)


@given(LARGE_BODIES, st.lists(st.integers(1, 400_000), min_size=1, max_size=40), st.lists(st.booleans(), min_size=1))
def test_a_large_frame_is_the_same_whether_it_is_fed_or_put_into_its_room(
    sizes: list[int], cuts: list[int], fed: list[bool]
) -> None:
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    stream = framed(*bodies)
    buffers = ReceiveBuffers()
    reader = FrameReader(BUFFER_BYTES, buffers)
    out: list[bytes] = []
    frames: list[memoryview] | None
    position, turn = 0, 0
    while position < len(stream):
        step = cuts[turn % len(cuts)]
        room = reader.room
        if room is not None and not fed[turn % len(fed)]:
            came = stream[position : position + min(step, len(room))]
            room[: len(came)] = came
            frames = reader.filled(len(came))
        else:
            came = stream[position : position + step]
            frames = reader.feed(came)
        out += [bytes(frame) for frame in frames]
        frames = room = None
        position, turn = position + len(came), turn + 1
    assert out == bodies
    assert reader.error is None
    assert reader.held == reader.missing == 0
    assert reader.room is None
    assert len(buffers) <= 2


def test_a_frame_that_is_looked_at_keeps_its_buffer_and_the_next_one_gets_another() -> None:
    buffers = ReceiveBuffers()
    reader = FrameReader(BUFFER_BYTES, buffers)

    def receive(fill: bytes) -> memoryview:
        reader.feed(pack(">i", LARGE) + fill * BEGUN)
        assert reader.room is not None
        reader.room[:] = fill * len(reader.room)
        (frame,) = reader.filled(LARGE - BEGUN)
        return frame

    first = receive(b"a")
    part = first[-1:]
    del first
    second = receive(b"b")
    assert len(buffers) == 2
    assert bytes(part) == b"a"
    assert bytes(second) == b"b" * LARGE
    del part, second
    receive(b"c")
    assert len(buffers) == 2


def test_where_no_buffer_is_free_or_large_enough_the_pieces_are_put_together() -> None:
    buffers = ReceiveBuffers()
    taken = [buffers.take(LARGE) for _ in range(MOST_BUFFERS)]
    assert None not in taken
    assert buffers.take(LARGE) is None
    reader = FrameReader(BUFFER_BYTES + 1, buffers)
    assert reader.feed(pack(">i", LARGE) + b"a" * BEGUN) == []
    assert reader.room is None
    (frame,) = reader.feed(b"b" * (LARGE - BEGUN))
    assert bytes(frame) == b"a" * BEGUN + b"b" * (LARGE - BEGUN)
    del taken
    assert reader.feed(pack(">i", BUFFER_BYTES - 3) + b"a" * BEGUN) == []
    assert reader.room is None
    assert reader.feed(b"b" * (BUFFER_BYTES - 3 - BEGUN)) != []


def test_what_announces_much_takes_a_buffer_when_it_has_begun_to_send_until_its_reader_goes() -> None:
    buffers = ReceiveBuffers()
    reader = FrameReader(BUFFER_BYTES, buffers)
    reader.feed(pack(">i", LARGE) + bytes(BEGUN - 5))
    assert reader.room is None
    assert reader.large
    reader.feed(b"a")
    assert reader.room is not None
    assert len(reader.room) == LARGE - BEGUN + 4
    del reader
    assert buffers.take(LARGE) is not None
    assert len(buffers) == 1
