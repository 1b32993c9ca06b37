"""What lies in remote storage of one partition, and what of it a log's history has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.storage.tiered.remote_segment import RemoteSegment, SegmentState, TopicIdPartition
from kwire.storage.tiered.remote_segments import RemoteSegments, epochs_within, in_history

STARTED, FINISHED, DELETING, DELETED = SegmentState


def segment(
    number: int, start: int, end: int, *epochs: tuple[int, int], size: int = 10, newest: int = 0
) -> RemoteSegment:
    return RemoteSegment(number.to_bytes(16, "big"), start, end, newest, size, epochs or ((0, start),))


def finished(*segments: RemoteSegment) -> RemoteSegments:
    found = RemoteSegments()
    for one in segments:
        assert found.add(one)
        assert found.update(one.id, FINISHED, 1, 1)
    return found


def test_a_segment_counts_when_its_copy_is_finished() -> None:
    segments = RemoteSegments()
    one = segment(1, 0, 9)
    assert segments.add(one)
    assert not segments.add(one)
    assert segments.find(5, [(0, 0)]) is None
    assert segments.highest_offset([(0, 0)]) == -1
    assert segments.update(one.id, FINISHED, 5, 2)
    found = segments.find(5, [(0, 0)])
    assert found is not None
    assert (found.id, found.state, found.event_ms, found.broker_id) == (one.id, FINISHED, 5, 2)
    assert segments.highest_offset([(0, 0)]) == 9
    assert segments.size([(0, 0)]) == 10


def test_a_segment_that_is_being_deleted_does_not_count_and_then_is_forgotten() -> None:
    one = segment(1, 0, 9)
    segments = finished(one)
    assert segments.update(one.id, DELETING, 1, 1)
    assert segments.find(5, [(0, 0)]) is None
    assert len(segments) == 1
    assert segments.update(one.id, DELETED, 1, 1)
    assert len(segments) == 0
    assert not segments.update(one.id, DELETED, 1, 1)


@pytest.mark.parametrize(
    ("states", "wrong"),
    [((), DELETED), ((FINISHED,), FINISHED), ((FINISHED,), DELETED), ((DELETING,), FINISHED), ((DELETING,), STARTED)],
)
def test_no_way_back(states: tuple[SegmentState, ...], wrong: SegmentState) -> None:
    segments = RemoteSegments()
    one = segment(1, 0, 9)
    segments.add(one)
    for state in states:
        assert segments.update(one.id, state, 1, 1)
    before = list(segments)
    assert not segments.update(one.id, wrong, 2, 2)
    assert list(segments) == before


def test_of_two_copies_of_the_same_offsets_one_is_found_and_all_are_listed() -> None:
    short, long = segment(1, 0, 9), segment(2, 5, 19)
    segments = finished(short, long)
    assert segments.find(7, [(0, 0)]).id == long.id  # type: ignore[union-attr]
    assert segments.find(2, [(0, 0)]).id == short.id  # type: ignore[union-attr]
    assert [one.id for one in segments.readable([(0, 0)])] == [short.id, long.id]


def test_a_long_segment_is_found_behind_a_short_one_that_begins_later() -> None:
    segments = finished(segment(1, 0, 100), segment(2, 50, 60))
    assert segments.find(80, [(0, 0)]).start_offset == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("epochs", "history", "expected"),
    [
        (((0, 10),), [(0, 0)], True),
        (((0, 10),), [(1, 0)], False),
        (((0, 10), (2, 15)), [(0, 0), (2, 15)], True),
        (((0, 10), (2, 15)), [(0, 0), (2, 16)], False),
        (((0, 10), (2, 15)), [(0, 0), (1, 12), (2, 15)], False),
        (((0, 10),), [(0, 0), (1, 19)], False),
        (((0, 10),), [(0, 0), (1, 20)], True),
        (((0, 10), (2, 15)), [(2, 17)], True),  # the log begins within the segment by now
        (((0, 10),), [(2, 20)], False),  # and here behind it
        (((0, 10),), [], False),
    ],
)
def test_what_is_part_of_a_history(
    epochs: tuple[tuple[int, int], ...], history: list[tuple[int, int]], expected: bool
) -> None:
    assert in_history(segment(1, 10, 19, *epochs), history) is expected


def test_copies_of_another_history_are_passed_over() -> None:
    lost, kept = segment(1, 10, 19, (1, 10)), segment(2, 10, 14, (2, 10))
    segments = finished(lost, kept)
    history = [(0, 0), (2, 10)]
    assert segments.find(12, history).id == kept.id  # type: ignore[union-attr]
    assert segments.find(17, history) is None
    assert segments.highest_offset(history) == 14


def test_the_part_of_a_history() -> None:
    history = [(0, 0), (2, 10), (3, 20), (5, 30)]
    assert epochs_within(history, 12, 25) == [(2, 12), (3, 20)]
    assert epochs_within(history, 10, 20) == [(2, 10)]
    assert epochs_within(history, 0, 100) == history
    assert epochs_within([(2, 10)], 5, 20) == [(2, 10)]
    assert epochs_within([], 5, 20) == []


def test_what_the_copies_tell_of_a_forgotten_history() -> None:
    segments = finished(
        segment(1, 0, 9, (0, 0)),
        segment(2, 10, 19, (0, 10), (2, 15)),
        segment(3, 10, 19, (0, 10), (1, 12)),  # of a leader that lost
        segment(4, 20, 29, (2, 20)),
        segment(5, 20, 29, (9, 20)),  # of one that came later than what is known
    )
    assert segments.history_before([(3, 30)], 0) == [(0, 0), (2, 15)]
    assert segments.history_before([(2, 25)], 0) == [(0, 0), (2, 15)]
    assert segments.history_before([(2, 25)], 20) == [(2, 20)]
    assert segments.history_before([(3, 31)], 0) == []
    assert segments.history_before([], 0) == []


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=12),
    st.integers(0, 60),
)
def test_a_look_up_finds_what_reaches_farthest(ranges: list[tuple[int, int]], offset: int) -> None:
    segments = finished(*(segment(n, start, start + length) for n, (start, length) in enumerate(ranges)))
    covering = [start + length for start, length in ranges if start <= offset <= start + length]
    found = segments.find(offset, [(0, 0)])
    assert (None if found is None else found.end_offset) == max(covering, default=None)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15), st.integers(0, 1)), max_size=12),
    st.integers(0, 60),
    st.sets(st.integers(0, 11)),
)
def test_what_is_readable_is_what_is_finished_and_part_of_the_history(
    copies: list[tuple[int, int, int]], offset: int, deleted: set[int]
) -> None:
    history = [(1, 0)]
    of = [
        segment(number, start, start + length, (epoch, start)) for number, (start, length, epoch) in enumerate(copies)
    ]
    segments = finished(*of)
    assert segments.size(history) == 10 * sum(epoch for _, _, epoch in copies)
    left = []
    for number, one in enumerate(of):
        if number in deleted:
            assert segments.update(one.id, DELETING, 1, 1)
        elif copies[number][2]:
            left.append((one.start_offset, one.id, one.end_offset))
    left.sort()
    readable = [(one.start_offset, one.id) for one in segments.readable(history, offset)]
    assert readable == [(start, id) for start, id, end in left if end >= offset]
    assert segments.highest_offset(history) == max((end for _, _, end in left), default=-1)
    assert segments.size(history) == 10 * len(left)
    assert segments.size([(0, 0)]) == 10 * sum(
        not epoch and number not in deleted for number, (_, _, epoch) in enumerate(copies)
    )


def test_the_keys_of_objects_take_long_names() -> None:
    of = TopicIdPartition("t" * 249, bytes(16), 7)
    for key in segment(1, 42, 50).keys(of):
        assert all(len(part) <= 200 for part in key.split("/"))
        assert "/7/00000000000000000042-AAAAAAAAAAAAAAAAAAAAAQ" in key
