"""What is known of where a segment need not be rolled changes nothing of where it is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.protocol.records.errors import InvalidBatch
from kwire.storage import rolling
from kwire.storage.log import Log
from kwire.storage.roll_limits import UNKNOWN

from .support import T0, Place, append, run

appends = st.tuples(
    st.just("append"), st.sampled_from([1, 50, 200, 400]), st.sampled_from([None, -90, 0, 40, 90, 130, 1000])
)
"""Their bytes, and their times after T0; None where they have none."""
changes = st.tuples(
    st.just("change"),
    st.sampled_from(
        [
            {"segment_bytes": 300},
            {"segment_bytes": 900},
            {"segment_bytes": 5000},
            {"segment_ms": 50},
            {"segment_ms": 100},
            {"segment_ms": 2000},
            {"segment_index_bytes": 36},
            {"segment_index_bytes": 4096},
        ]
    ),
)
truncations = st.tuples(st.just("truncate"), st.sampled_from([0, 0, 0.3, 0.9]))
waits = st.tuples(st.just("wait"), st.sampled_from([1, 60, 120]))
known = st.just([("append", 1, 0)] * 2)
"""After these there are limits."""
others = st.lists(st.one_of(appends, changes, truncations, waits), min_size=2, max_size=8)


async def _take(place: Place, log: Log, step: tuple) -> None:
    match step:
        case ("append", size, after):
            with suppress(InvalidBatch):  # it is larger than a segment may be
                await append(log, "x" * size, timestamp=-1 if after is None else T0 + after)
        case ("change", values):
            log.config = replace(log.config, **values)
        case ("truncate", part):
            log.truncate_to(int(log.log_end_offset * part))
        case ("wait", ms):
            place.clock.advance(ms)


async def _bases(steps: list[tuple], *, forget: bool) -> list[list[int]]:
    place = Place(segment_bytes=900, segment_ms=100, segment_jitter_ms=0)
    log = place.open()
    bases = []
    for step in steps:
        if forget:
            log.segments.active.roll_limits = UNKNOWN
        await _take(place, log, step)
        bases.append([segment.base_offset for segment in log.segments])
    return bases


@settings(max_examples=400)
@given(st.lists(st.tuples(known, others), min_size=1, max_size=3))
def test_segments_are_rolled_where_they_were(rounds: list[tuple[list[tuple], list[tuple]]]) -> None:
    steps = [step for known_now, rest in rounds for step in (*known_now, *rest)]
    assert run(_bases, steps, forget=False) == run(_bases, steps, forget=True)


async def _second_look(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    log = Place(segment_bytes=900, segment_ms=100).open()
    looks = []
    look = rolling.has_room

    def has_room(segment, size, *rest):
        looks.append(segment.size)
        return look(segment, size, *rest)

    monkeypatch.setattr(rolling, "has_room", has_room)
    for _ in range(6):
        await append(log, "x" * 50)
    return looks


@pytest.mark.plain
def test_most_appends_need_no_closer_look(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(run(_second_look, monkeypatch)) == 2  # the first two: an empty segment has no time yet
