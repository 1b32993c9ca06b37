"""Which copies go, and where the log begins then."""

from __future__ import annotations

from typing import Any

from kwire.storage.tiered.expiring import Expiry, Retention, expire
from kwire.storage.tiered.remote_segment import SegmentState
from kwire.storage.tiered.remote_segments import RemoteSegments
from tests.storage.tiered.test_remote_segments import finished, segment

HISTORY = [(0, 0)]


def look(segments: RemoteSegments, *, copied: tuple[bytes, ...] = (), epochs: Any = HISTORY, **values: int) -> Expiry:
    defaults = {"retention_ms": -1, "retention_bytes": -1, "now_ms": 1000, "log_start_offset": 0, "only_local_bytes": 0}
    return expire(segments, epochs, Retention(**{**defaults, **values}), copied)


def starts(expiry: Expiry) -> list[int]:
    return [one.start_offset for one in expiry.doomed]


def three() -> RemoteSegments:
    return finished(segment(1, 0, 9, newest=100), segment(2, 10, 19, newest=200), segment(3, 20, 29, newest=300))


def test_nothing_expires_without_a_limit() -> None:
    expiry = look(three())
    assert (starts(expiry), expiry.log_start_offset) == ([], None)


def test_by_age() -> None:
    expiry = look(three(), retention_ms=800)
    assert (starts(expiry), expiry.log_start_offset) == ([0, 10], 20)
    assert starts(look(three(), retention_ms=801)) == [0]


def test_by_age_an_old_segment_behind_a_young_one_stays() -> None:
    segments = finished(segment(1, 0, 9, newest=900), segment(2, 10, 19, newest=100))
    assert starts(look(segments, retention_ms=500)) == []


def test_by_size_what_is_only_here_counts_too() -> None:
    assert starts(look(three(), retention_bytes=30)) == []
    assert starts(look(three(), retention_bytes=29)) == []
    expiry = look(three(), retention_bytes=20)
    assert (starts(expiry), expiry.log_start_offset) == ([0], 10)
    assert starts(look(three(), retention_bytes=30, only_local_bytes=20)) == [0, 10]
    assert starts(look(three(), retention_bytes=0)) == [0, 10, 20]


def test_what_the_log_has_left_behind() -> None:
    expiry = look(three(), log_start_offset=15)
    assert (starts(expiry), expiry.log_start_offset) == ([0], None)
    # It does not count against the size any more.
    assert starts(look(three(), log_start_offset=15, retention_bytes=20)) == [0]


def test_an_interrupted_copy_goes_unless_it_is_under_way_here() -> None:
    segments = three()
    left = segment(4, 30, 39)
    segments.add(left)
    assert starts(look(segments)) == [30]
    assert starts(look(segments, copied=(left.id,))) == []


def test_an_interrupted_deletion_is_done_again() -> None:
    segments = three()
    segments.update(segment(2, 10, 19).id, SegmentState.DELETE_SEGMENT_STARTED, 1, 1)
    assert starts(look(segments)) == [10]


def test_copies_from_before_all_that_the_history_knows_go() -> None:
    segments = finished(segment(1, 0, 9, (0, 0)), segment(2, 10, 19, (3, 10)), segment(3, 10, 14, (5, 10)))
    assert starts(look(segments, epochs=[(4, 0), (5, 10)])) == [0, 10]
    assert starts(look(segments, epochs=[])) == []
