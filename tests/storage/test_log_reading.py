import tracemalloc

import pytest

from kwire.ports.files import FileSlice
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.header import iter_batches
from kwire.storage.open_files import OpenFiles
from kwire.storage.segment import Segment

from .produced import edited, many_headers
from .support import T0, Place, append, end_transaction, idempotent, placed, read_all


async def log_of(count=10, **values):
    log = Place(**values).open()
    for i in range(count):
        await append(log, f"{i}a", f"{i}b", timestamp=T0 + 10 * i)
    return log


def offsets(found):
    return [header.base_offset for header, _ in iter_batches(found.slice.read())] if found.slice else []


async def test_a_read_begins_with_the_batch_that_holds_the_offset():
    log = await log_of()
    assert offsets(log.read(0, 1 << 20)) == list(range(0, 20, 2))
    assert offsets(log.read(5, 1 << 20)) == list(range(4, 20, 2))
    assert offsets(log.read(19, 1 << 20)) == [18]


async def test_nothing_is_read_at_the_end_or_beyond_the_bound():
    log = await log_of()
    assert log.read(20, 1 << 20).slice is None
    assert log.read(20, 1 << 20, min_one=True).slice is None
    assert log.read(8, 1 << 20, upto=8).slice is None
    assert log.read(9, 1 << 20, upto=4).slice is None
    assert log.read(3, 0).slice is None


@pytest.mark.parametrize("offset", [-1, 21, 1000])
async def test_an_offset_out_of_range(offset):
    log = await log_of()
    with pytest.raises(KafkaError) as refused:
        log.read(offset, 100)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_offsets_before_the_log_start_are_gone():
    log = await log_of()
    log.set_high_watermark(20)
    log.advance_log_start(7)
    with pytest.raises(KafkaError):
        log.read(6, 100)
    assert offsets(log.read(7, 1 << 20))[0] == 6


async def test_the_bound_leaves_out_the_batch_it_lies_in():
    log = await log_of()
    assert offsets(log.read(0, 1 << 20, upto=6)) == [0, 2, 4]
    assert offsets(log.read(0, 1 << 20, upto=7)) == [0, 2, 4]
    assert offsets(log.read(0, 1 << 20, upto=100)) == list(range(0, 20, 2))


async def test_max_bytes_cuts_and_min_one_gives_the_first_batch_whole():
    log = await log_of()
    size = log.read(0, 1 << 20).slice.size // 10
    cut = log.read(0, 2 * size + 10)
    assert cut.slice.size == 2 * size + 10
    assert offsets(cut) == [0, 2]
    assert not cut.incomplete
    small = log.read(4, 10)
    assert small.slice.size == 10
    assert small.incomplete
    assert offsets(log.read(4, 10, min_one=True)) == [4]
    assert offsets(log.read(4, 10, min_one=True, upto=6)) == [4]


async def test_a_read_stays_within_a_segment_and_the_next_one_follows():
    log = await log_of(10, segment_bytes=300)
    assert len(log.segments) > 3
    assert offsets(log.read(0, 1 << 20)) == list(range(0, log.segments[1].base_offset, 2))
    assert offsets(log.read(log.segments[1].base_offset, 1 << 20))[0] == log.segments[1].base_offset
    assert [offset for offset, _ in read_all(log)] == list(range(20))
    assert [offset for offset, _ in read_all(log, upto=13)] == list(range(12))


async def test_a_file_that_is_still_sent_from_is_not_opened_again():
    """Else clients that take their answers slowly would take up any number of descriptors."""
    log = await log_of(10, segment_bytes=300)
    first, second = log.segments[0], log.segments[1]
    first.open_files = second.open_files = OpenFiles(1)
    for segment in first, second:
        segment.drop_open()
    waiting = FileSlice(first.file, 0, 1)
    assert second.file is not waiting.file
    assert len(first.open_files) == 1
    assert first.file is waiting.file
    second.drop_open()
    del waiting
    assert second.file.pread(8, 0) == second.base_offset.to_bytes(8, "big")


async def test_what_is_sent_of_a_log_that_is_gone_is_not_taken_for_the_next_one_of_its_name():
    """Its folder had another name already when it let go of what was open."""
    log = await log_of(10, segment_bytes=300)
    gone = log.segments[0]
    waiting = FileSlice(gone.file, 0, 1)
    gone.drop_open()
    path, gone.dir = gone.dir, f"{gone.dir}-delete"
    gone.forget_open()
    following = Segment(
        gone.files, gone.open_files, path, gone.base_offset, size=gone.size, created_ms=T0, index_interval=100
    )
    assert following.file is not waiting.file


async def test_a_look_up_by_time_makes_nothing_of_headers():
    log = Place().open()
    sent = edited(many_headers(100_000), base_timestamp=T0, max_timestamp=T0)
    await log.append_as_leader(sent, 0)
    log.set_high_watermark(1)
    tracemalloc.start()
    try:
        assert (await log.offset_for_timestamp(0)).offset == 0
        assert (await log.max_timestamp_offset()).offset == 0
        assert tracemalloc.get_traced_memory()[1] < 5 * len(sent)
    finally:
        tracemalloc.stop()


async def test_offsets_that_do_not_exist_lead_to_the_next():
    log = Place().open()
    await log.append_as_follower(placed(0, ["a"]))
    log.roll()
    await log.append_as_follower(placed(10, ["b"]))
    assert offsets(log.read(1, 1 << 20)) == [10]
    assert offsets(log.read(7, 1 << 20, upto=11)) == [10]
    assert log.read(7, 1 << 20, upto=10).slice is None


async def test_every_read_is_the_same_from_a_cold_log():
    log = await log_of(60, segment_bytes=1500, index_interval_bytes=200)
    await log.close()
    place = Place(log.services.files, segment_bytes=1500, index_interval_bytes=200)
    for offset in range(120):
        again = place.open()
        found, known = again.read(offset, 700, upto=117), await again.fetch(offset, 700, upto=117)
        assert found[:3] == known[:3]
        assert offsets(found) == offsets(known)
        assert offsets(found)[:1] in ([], [offset // 2 * 2])


async def test_high_watermark_and_log_start_stay_in_order():
    log = await log_of()
    assert log.high_watermark == 0
    assert log.advance_high_watermark(6)
    assert not log.advance_high_watermark(4)
    with pytest.raises(KafkaError) as refused:
        log.advance_log_start(7)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.advance_log_start(5)
    assert not log.advance_log_start(5)
    log.set_high_watermark(3)
    assert log.high_watermark == 5
    log.set_high_watermark(1000)
    assert log.high_watermark == 20
    assert not log.advance_high_watermark(1000)


async def transactions():
    """Offsets 0-1 of an open transaction, 2 plain, 3 its abort; 4-5 of a committed one, 6 its commit; 7 plain."""
    log = Place().open()
    await log.append_as_leader(idempotent(["t1", "t2"], 0, transactional=True), 0)
    await append(log, "plain")
    assert log.last_stable_offset == 0
    log.set_high_watermark(3)
    assert log.last_stable_offset == 0
    await end_transaction(log, commit=False)
    await log.append_as_leader(idempotent(["t3", "t4"], 2, transactional=True), 0)
    await end_transaction(log, commit=True)
    await append(log, "plain")
    return log


async def test_the_last_stable_offset_follows_the_markers():
    log = await transactions()
    assert log.last_stable_offset == 0  # the abort marker is not below the high watermark
    log.set_high_watermark(4)
    assert log.last_stable_offset == 4
    log.set_high_watermark(6)
    assert log.last_stable_offset == 4
    log.set_high_watermark(8)
    assert log.last_stable_offset == 8


async def test_aborted_transactions_are_found_for_what_was_read():
    log = await transactions()
    aborted = log.aborted(0, log.read(0, 1 << 20))
    assert [(a.producer_id, a.first_offset, a.last_offset) for a in aborted] == [(7, 0, 3)]
    assert log.aborted(4, log.read(4, 1 << 20)) == []
    assert log.aborted(8, log.read(8, 1 << 20)) == []


async def test_a_transaction_that_is_aborted_segments_later_is_found():
    log = Place(index_interval_bytes=0).open()
    await log.append_as_leader(idempotent(["t1"], 0, transactional=True), 0)
    log.roll()
    await append(log, "plain")
    log.roll()
    await append(log, "plain")
    await end_transaction(log, commit=False)
    for offset in (0, 1, 2):
        assert len(log.aborted(offset, log.read(offset, 1 << 20))) == 1


async def test_times():
    log = await log_of(10, segment_bytes=300)
    assert await log.offset_for_timestamp(0) == (T0, 0, 0)
    assert await log.offset_for_timestamp(T0 + 31) == (T0 + 31, 7, 0)
    assert await log.offset_for_timestamp(T0 + 32) == (T0 + 40, 8, 0)
    assert await log.offset_for_timestamp(T0 + 92) is None
    assert await log.max_timestamp_offset() == (T0 + 91, 19, 0)
    log.set_high_watermark(20)
    log.advance_log_start(7)
    assert await log.offset_for_timestamp(0) == (T0 + 31, 7, 0)


async def test_times_that_go_back_and_forth():
    log = Place().open()
    for timestamp in (50, 10, 90, 90, 20):
        await append(log, "x", timestamp=T0 + timestamp, epoch=timestamp)
    assert await log.max_timestamp_offset() == (T0 + 90, 2, 90)
    assert await log.offset_for_timestamp(T0 + 51) == (T0 + 90, 2, 90)
    assert await log.offset_for_timestamp(T0 + 11) == (T0 + 50, 0, 50)


async def test_times_of_a_log_that_was_opened_again():
    log = await log_of(10, segment_bytes=300)
    await log.close()
    again = Place(log.services.files, segment_bytes=300).open()
    assert again.segments[0].newest is None
    assert await again.max_timestamp_offset() == (T0 + 91, 19, 0)
    assert await again.offset_for_timestamp(T0 + 31) == (T0 + 31, 7, 0)


async def test_times_of_an_empty_log():
    log = Place().open()
    assert await log.max_timestamp_offset() is None
    assert await log.offset_for_timestamp(0) is None


async def test_a_segment_removed_while_its_index_is_loaded():
    log = await log_of(20, segment_bytes=300)
    await log.close()
    place = Place(log.services.files, segment_bytes=300, file_delete_delay_ms=0)
    again = place.open(high_watermark=40)
    run = place.services.executor.run

    async def remove_amid(function, *arguments):
        if len(again.segments) > 3:
            again.advance_log_start(30)
            place.services.executor.run = run
            await again.delete_old_segments(T0)
            await place.services.chores.finish_due()
        return await run(function, *arguments)

    place.services.executor.run = remove_amid
    with pytest.raises(KafkaError) as gone:
        await again.fetch(3, 1000)
    assert gone.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert again.log_dir.online
    assert all(int(name[:20]) >= again.segments.first.base_offset for name in place.names() if name[0] == "0")


@pytest.mark.parametrize("look_up", ["a time", "the newest"])
async def test_segments_removed_while_a_time_is_looked_up(look_up):
    log = await log_of(20, segment_bytes=300)
    await log.close()
    place = Place(log.services.files, segment_bytes=300, file_delete_delay_ms=0)
    again = place.open(high_watermark=40)
    run = place.services.executor.run

    async def remove_meanwhile(function, *arguments):
        place.services.executor.run = run
        result = await run(function, *arguments)
        again.advance_log_start(30)
        await again.delete_old_segments(T0 if look_up == "a time" else T0 + again.config.retention_ms + 1000)
        await place.services.chores.finish_due()
        return result

    place.services.executor.run = remove_meanwhile
    if look_up == "a time":
        assert await again.offset_for_timestamp(0) == (T0 + 150, 30, 0)
    else:
        assert await again.max_timestamp_offset() is None
    assert again.log_dir.online
