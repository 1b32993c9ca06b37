"""One cleaning: what becomes of the segments, and what goes on meanwhile."""

from __future__ import annotations

import pytest
import trio

from kwire.ports.memory_files import MemoryFile
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import Record, iter_records
from kwire.storage import layout, reading
from kwire.storage.cleaning.cleanable import look
from kwire.storage.cleaning.cleaning import CleaningAborted, Uncleanable
from kwire.storage.cleaning.offset_map import BYTES_PER_PLACE
from kwire.storage.cleaning.work import CleanerSettings
from kwire.storage.log import Log

from ..support import Place
from .compacted import (
    DELETE_RETENTION_MS,
    Seen,
    batches,
    clean,
    clean_it,
    compacted_place,
    end,
    killed_after,
    latest,
    put,
    records,
    unthrottled,
)


async def filled(place: Place, count: int = 30, keys: int = 4) -> Log:
    log = place.open()
    for number in range(count):
        await put(log, (f"k{number % keys}", f"v{number}"), (f"other{number % 7}", "x" * 20))
    return log


async def test_segments_are_merged_and_their_indexes_built() -> None:
    place = compacted_place(segment_bytes=1000)
    log = await filled(place)
    before = records(log)
    done = await clean(log)
    assert records(log) == latest(before)
    assert (done.bytes_after, done.end_offset) == (log.size, 60)
    assert len(log.segments) == 5
    await put(log, ("z", "z"))
    await clean(log, 60)
    assert records(log) == [*latest(before), Seen(60, "z", "z")]
    assert len(log.segments) == 2  # what was small after the first cleaning fits into one
    for segment in log.segments:
        if segment.size:
            assert segment.load_indexes(segment.file).newest == segment.build_indexes(segment.file).newest
    await log.close()
    assert records(place.open()) == [*latest(before), Seen(60, "z", "z")]


async def test_a_segment_may_be_left_without_records() -> None:
    place = compacted_place(segment_bytes=110)
    log = place.open()
    for number in range(5):
        await put(log, ("k", f"{number}" * 30))
    await clean(log)
    assert records(log) == [Seen(4, "k", "4" * 30)]
    assert records(log, 0) == records(log, 3) == records(log)
    assert [segment.size for segment in log.segments][:4] == [0, 0, 0, 0]
    await put(log, ("z", "z"))
    await clean(log, 5)
    assert len(log.segments) == 3  # the empty ones went into the first that has something
    await log.close()
    assert records(place.open()) == [Seen(4, "k", "4" * 30), Seen(5, "z", "z")]


async def test_what_the_map_has_no_room_for_is_cleaned_the_next_time() -> None:
    log = await filled(compacted_place(segment_bytes=1000), keys=20)
    before = records(log)
    settings = CleanerSettings(10 * BYTES_PER_PLACE, 0.9, 100)
    upto = [0]
    while upto[-1] < 60:
        upto.append((await clean(log, upto[-1], roll=len(upto) == 1, settings=settings)).end_offset)
    assert len(upto) > 3
    assert upto == sorted(set(upto))
    assert records(log) == latest(before)


async def test_batches_with_more_keys_than_the_map_has_room_for_are_cleaned_in_parts() -> None:
    """As in Apache Kafka: the map ends amid a batch, and the next cleaning begins there."""
    log = compacted_place(segment_bytes=1000).open()
    for value in ("old", "new"):
        await put(log, *[(f"{number}", value) for number in range(20)])
    await put(log, ("x", None), *[(f"{number}", "newest") for number in range(5, 15)])
    before = records(log)
    settings = CleanerSettings(10 * BYTES_PER_PLACE, 0.9, 100)
    upto = [0]
    while upto[-1] < 51:
        upto.append((await clean(log, upto[-1], roll=len(upto) == 1, settings=settings)).end_offset)
    assert len(upto) > 3
    assert upto == sorted(set(upto))
    assert records(log) == latest(before)


async def test_records_without_a_key_go() -> None:
    """They are of a time when the topic was not compacted."""
    log = compacted_place(cleanup_policy=frozenset({"delete"})).open()
    await log.append_as_leader(build_batch([Record(0, 1, None, b"v", []), Record(1, 2, b"k", b"v", [])]), 0)
    log.set_high_watermark(2)
    log.config = compacted_place().config
    await clean(log)
    assert records(log) == [Seen(1, "k", "v")]


async def test_open_transactions_are_not_cleaned() -> None:
    log = compacted_place(segment_bytes=110).open()
    await put(log, ("a", "0" * 30))
    await put(log, ("a", "1" * 30))
    await put(log, ("a", "2"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    await put(log, ("a", "3" * 35))
    done = await clean(log)
    assert done.end_offset == 2
    assert [seen.offset for seen in records(log)] == [1, 2, 3]
    await end(log, commit=True)
    await clean(log, done.end_offset)
    assert [seen.offset for seen in records(log)] == [3]


async def test_aborted_transactions_are_told_of_as_long_as_they_have_batches() -> None:
    log = compacted_place(segment_bytes=150).open()
    await put(log, ("a", "0"))
    await put(log, ("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    await end(log, commit=False)
    await clean(log)
    assert [(header.base_offset, header.count) for header, _ in batches(log)] == [(0, 1), (1, 0), (2, 1)]
    found = log.read(0, 1000)
    assert [txn.first_offset for txn in log.aborted(0, found)] == [1]
    await put(log, ("b", "3"), producer_id=7, producer_epoch=0, base_sequence=1, transactional=True)
    await end(log, commit=True)
    await clean(log, 3)
    log.roll()
    await clean(log, 5)
    assert [txn.first_offset for txn in log.aborted(0, log.read(0, 1000))] == []


@pytest.mark.parametrize("segment_bytes", [120, 1000])
async def test_a_crash_at_any_step_leaves_the_latest_of_each_key(segment_bytes: int) -> None:
    """With the smaller segments, some are left without records."""
    step, finished = 0, False
    while not finished:
        place = compacted_place(segment_bytes=segment_bytes)
        log = await filled(place, count=8)
        expected = latest(records(log))
        log.roll()
        place.memory.fault = killed_after(step)
        try:
            await clean(log, roll=False)
            finished = True
        except KafkaError:
            step += 1
        place.memory.fault = None
        end_offset = log.log_end_offset
        again = place.open(clean=False, recovery_point=end_offset, high_watermark=end_offset)
        assert latest(records(again)) == expected
        assert again.log_end_offset == end_offset
        assert not [name for name in place.names() if name.endswith((layout.CLEANED, layout.SWAP, layout.DELETED))]
        for segment in again.segments:
            assert segment.load_newest() == segment.build_indexes(segment.file).newest
    assert step >= 20


# What goes on meanwhile


async def test_who_reads_an_old_segment_goes_on_reading_it() -> None:
    log = await filled(compacted_place(segment_bytes=1000))
    found = log.read(0, 500)
    assert found.slice is not None
    before = found.slice.read()
    await clean(log)
    assert found.slice.read() == before
    log.services.clock.advance(log.config.file_delete_delay_ms)  # type: ignore[attr-defined]
    await log.services.chores.finish_due()
    assert found.slice.read() == before
    assert not [name for name in log.services.files.list(log.dir) if name.endswith(".deleted")]


async def test_no_cleaning_frees_on_the_event_loop_what_the_one_before_it_replaced() -> None:
    log = await filled(compacted_place(segment_bytes=1000))
    await clean(log)
    files = log.services.files
    replaced = [name for name in files.list(log.dir) if name.endswith(".log.deleted")]
    assert replaced
    later = log.config.file_delete_delay_ms // 2
    log.services.clock.advance(later)  # type: ignore[attr-defined]
    await put(log, ("a", "again"))
    await clean(log)

    def waiting() -> set[str]:
        return {name for name in files.list(log.dir) if name.endswith(".deleted") and ".log" in name}

    first, both = set(replaced), waiting()
    segments = {name.partition(".")[0] for name in both}
    assert len(both) > len(segments), "renamed over a file that waits: the system frees it within that call"
    log.services.clock.advance(later)  # type: ignore[attr-defined]
    await log.services.chores.finish_due()
    assert waiting() == both - first, "each stays for as long as it is to"
    log.services.clock.advance(later)  # type: ignore[attr-defined]
    await log.services.chores.finish_due()
    assert not waiting()


async def test_a_look_up_by_time_that_meets_a_swap_is_made_again() -> None:
    place = compacted_place(segment_bytes=1000)
    log = await filled(place)
    times = {seen.offset: record.timestamp for seen, record in zip(records(log), _records(log), strict=True)}
    await clean(log)
    for seen in records(log):
        found = await log.offset_for_timestamp(times[seen.offset])
        assert found is not None
        assert found.timestamp >= times[seen.offset]

    executor, swapped = log.services.executor, False

    class Swapping:
        """Cleans the log while a look-up waits for its worker thread."""

        async def run(self, function, *arguments):  # type: ignore[no-untyped-def]
            nonlocal swapped
            log.services.executor = executor
            if not swapped:
                swapped = True
                await put(log, ("k0", "new"))
                await clean(log, 0)
            return await executor.run(function, *arguments)

    expected = await log.offset_for_timestamp(times[58])
    log.services.executor = Swapping()
    assert await log.offset_for_timestamp(times[58]) == expected
    assert swapped


def _records(log: Log):  # type: ignore[no-untyped-def]
    return [record for _, batch in batches(log) for record in iter_records(batch)]


async def half_way(log: Log, change) -> None:  # type: ignore[no-untyped-def]
    """Cleans, with `change` after the first piece of work."""
    pieces = 0

    async def throttle(size: int) -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 1:
            result = change()
            if result is not None:
                await result

    log.roll()
    cleanable = await look(log, None, log.services.clock.wall_ms())
    await clean_it(cleanable, throttle=throttle)


async def test_a_truncation_ends_the_cleaning() -> None:
    place = compacted_place(segment_bytes=1000)
    log = await filled(place)
    before = records(log)
    with pytest.raises(CleaningAborted):
        await half_way(log, lambda: log.truncate_to(41) and None)
    assert records(log) == [seen for seen in before if seen.offset < 40]
    assert not [name for name in place.names() if ".cleaned" in name or ".swap" in name]


async def test_a_truncation_before_the_cleaning_begins_ends_it() -> None:
    """What took appends when the log was looked at need not be what takes them now."""
    place = compacted_place(segment_bytes=1000)
    log = await filled(place)
    log.roll()
    cleanable = await look(log, None, place.clock.wall_ms())
    log.truncate_to(40)
    before = records(log)
    with pytest.raises(CleaningAborted):
        await clean_it(cleanable, throttle=unthrottled)
    assert records(log) == before


async def test_another_cleanup_policy_ends_the_cleaning() -> None:
    log = await filled(compacted_place(segment_bytes=1000))
    before = records(log)

    def change() -> None:
        log.config = compacted_place(cleanup_policy=frozenset({"delete"})).config

    with pytest.raises(CleaningAborted):
        await half_way(log, change)
    assert records(log) == before


async def test_a_deletion_of_segments_ends_the_cleaning() -> None:
    place = compacted_place(segment_bytes=1000)
    log = await filled(place)

    async def delete() -> None:
        log.advance_log_start(30)
        await log.delete_old_segments(place.clock.wall_ms())

    with pytest.raises(CleaningAborted):
        await half_way(log, delete)
    assert log.log_dir.online
    await clean(log, 30)
    assert {seen.key for seen in records(log)} == {f"k{n}" for n in range(4)} | {f"other{n}" for n in range(7)}


async def test_the_deletion_of_the_partition_ends_the_cleaning() -> None:
    place = compacted_place(segment_bytes=1000)
    log = await filled(place)

    def delete() -> None:
        log.forget_files()
        log.retire_to("/data/t-0.gone-delete")
        place.memory.rename("/data/t-0", "/data/t-0.gone-delete")

    with pytest.raises(CleaningAborted):
        await half_way(log, delete)
    assert log.log_dir.online


async def test_a_cleaning_that_is_cancelled_leaves_nothing_behind(autojump_clock) -> None:
    place = compacted_place(segment_bytes=1000)
    log = await filled(place)
    before = records(log)
    pieces = 0

    async def throttle(size: int) -> None:
        nonlocal pieces
        pieces += 1
        if pieces > 1:
            await trio.sleep_forever()

    log.roll()
    with trio.move_on_after(1):
        await clean_it(await look(log, None, place.clock.wall_ms()), throttle=throttle)
    assert records(log) == before
    assert not [name for name in place.names() if ".cleaned" in name]


async def test_damaged_bytes_are_not_given_a_new_checksum() -> None:
    place = compacted_place(segment_bytes=1000)
    log = await filled(place)
    path = log.segments.first.path(".log")
    place.memory.open(path).pwrite([b"\xff"], 100)
    with pytest.raises(Uncleanable, match=r"00000000000000000000\.log has no batch with a right checksum at byte 0"):
        await clean(log)
    assert log.log_dir.online
    assert not [name for name in place.names() if ".cleaned" in name]


async def test_the_old_files_time_stays() -> None:
    """It is the age of records that have no time."""
    place = compacted_place(segment_bytes=1000)
    log = await filled(place)
    modified = log.segments[len(log.segments) - 1].modified_ms()
    place.clock.advance(1_000_000)
    await clean(log)
    assert {segment.modified_ms() for segment in log.segments if segment is not log.segments.active} == {modified}


async def test_aborted_transactions_of_what_was_read_before_a_swap_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that waited for a cold slice is made again: its file knows more aborted records than the new index."""
    place = compacted_place(segment_bytes=10_000)
    log = place.open()
    await put(log, ("a", "aborted"), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    await end(log, commit=False)
    await put(log, ("a", "2"), producer_id=7, producer_epoch=0, base_sequence=1, transactional=True)
    await end(log, commit=True)
    log.roll()
    cold = True
    monkeypatch.setattr(MemoryFile, "is_loading_due", lambda self, position, size: cold)

    async def loaded(log, executor, part):  # type: ignore[no-untyped-def]
        nonlocal cold
        if not cold:
            return
        cold = False
        await clean(log, roll=False)
        place.clock.advance(DELETE_RETENTION_MS + 1)
        await clean(log, roll=False)  # and the marker goes, with what the index knew of it

    monkeypatch.setattr(reading, "_load", loaded)
    found = await log.fetch(0, 1000)
    assert found.slice is not None
    aborted = {txn.first_offset for txn in log.aborted(0, found)}
    visible = [
        record.offset
        for header, batch in iter_batches(found.slice.read())
        if not header.control and header.base_offset not in aborted
        for record in iter_records(batch)
    ]
    assert visible == [2]


async def test_where_a_cleaned_segment_begins_no_transaction_is_said_to_be_open() -> None:
    """A start after a crash would find it open, and nothing that ends it: consumers would wait for it for ever."""
    place = compacted_place(segment_bytes=600)
    log = place.open()
    await put(log, ("a", "0" * 400))
    await put(log, ("b", "1" * 30), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    log.roll()
    begins = log.log_end_offset
    await end(log, commit=True)
    await put(log, ("b", "2" * 100))
    checkpoint = 0
    for _ in range(3):
        place.clock.advance(DELETE_RETENTION_MS + place.services.producer_expiration_ms + 1)
        log.producer_state.remove_expired(place.clock.wall_ms())
        await put(log, ("c", "3"))
        checkpoint = (await clean(log, checkpoint)).end_offset
    assert not any(header.control for header, _ in batches(log))
    *_, before, active = (segment.base_offset for segment in log.segments)
    assert before == begins
    end_offset = log.log_end_offset
    again = place.open(clean=False, recovery_point=active, high_watermark=end_offset)
    assert again.log_end_offset == again.last_stable_offset == end_offset
