"""The time of day is set by days, forwards or back: what goes by it follows, as in Apache Kafka, and nothing breaks.

What measures a delay (flush.ms, file.delete.delay.ms) goes by a clock that nobody sets.
"""

import pytest

from kwire.storage import layout

from .support import T0, Place, append, batch, idempotent, read_all

DAY = 86_400_000


async def test_records_are_found_by_time_whichever_way_the_clock_went():
    place = Place(message_timestamp_type="LogAppendTime", segment_bytes=300, index_interval_bytes=0)
    log = place.open()
    times = []
    for jump in (0, 3 * DAY, -5 * DAY, 1000, 1000, 4 * DAY, -DAY):
        place.clock.set(jump)
        for _ in range(3):
            place.clock.advance(10)
            times.append((await log.append_as_leader(batch(["x"]), 0)).log_append_time)
    await log.close()
    for again in (place.open(), place.open(clean=False)):
        for wanted in (*times, min(times) - 1):
            first = next(offset for offset, time in enumerate(times) if time >= wanted)
            assert await again.offset_for_timestamp(wanted) == (times[first], first, 0)
        assert await again.offset_for_timestamp(max(times) + 1) is None
        assert await again.max_timestamp_offset() == (max(times), times.index(max(times)), 0)


async def test_segments_are_rolled_when_the_clock_has_gone_forwards_and_go_on_when_it_went_back():
    place = Place(message_timestamp_type="LogAppendTime", segment_ms=DAY)
    log = place.open()
    await append(log, "a")
    place.clock.set(-3 * DAY)
    await append(log, "b")
    assert len(log.segments) == 1
    place.clock.set(5 * DAY)
    await append(log, "c")
    assert [segment.base_offset for segment in log.segments] == [0, 2]


async def test_segments_without_times_are_rolled_by_their_age():
    place = Place(segment_ms=DAY)
    log = place.open()
    await append(log, "a", timestamp=-1)
    place.clock.set(-3 * DAY)
    await append(log, "b", timestamp=-1)
    place.clock.set(3 * DAY + DAY + 1)
    await append(log, "c", timestamp=-1)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


async def test_retention_takes_the_clock_at_its_word():
    place = Place(retention_ms=DAY, segment_bytes=300)
    log = place.open()
    for i in range(6):
        await append(log, "xxxxx", "yyyyy", timestamp=T0 + i)
    log.set_high_watermark(log.log_end_offset)
    place.clock.set(-3 * DAY)
    assert await log.delete_old_segments(place.clock.now) == 0
    place.clock.set(3 * DAY)
    assert await log.delete_old_segments(place.clock.now) == 0
    place.clock.set(2 * DAY)
    assert await log.delete_old_segments(place.clock.now) > 1
    assert read_all(log) == []
    place.clock.set(-2 * DAY)
    assert await append(log, "new") == 12
    log.set_high_watermark(13)
    assert await log.delete_old_segments(place.clock.now) == 0


@pytest.mark.parametrize("jump", [-3 * DAY, 3 * DAY])
async def test_deleted_files_stay_for_their_delay(jump):
    place = Place(file_delete_delay_ms=60_000)
    log = place.open()
    await append(log, "a")
    log.roll()
    log.set_high_watermark(1)
    log.advance_log_start(1)
    await log.delete_old_segments(place.clock.now)
    place.clock.set(jump)
    place.clock.advance(59_999)
    await place.services.chores.finish_due()
    assert layout.segment_name(0, layout.LOG) + layout.DELETED in place.names()
    place.clock.advance(1)
    await place.services.chores.finish_due()
    assert not any(name.endswith(layout.DELETED) for name in place.names())


async def test_a_producer_goes_on_whichever_way_the_clock_went():
    log = Place().open()
    await log.append_as_leader(idempotent(["a"], 0), 0)
    log.producer_state.remove_expired(T0 - 3 * DAY)
    assert (await log.append_as_leader(idempotent(["a"], 0), 0)).duplicate
    log.producer_state.remove_expired(T0 + 3 * DAY)
    assert (await log.append_as_leader(idempotent(["b"], 1), 0)).first_offset == 1
