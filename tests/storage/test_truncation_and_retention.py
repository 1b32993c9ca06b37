from contextlib import suppress

import pytest
from trio.testing import wait_all_tasks_blocked

from kwire.ports.simulated_disk import Killed, SimulatedDisk, kill_at
from kwire.protocol.errors import KafkaError
from kwire.storage import flushing, layout

from .held import HeldExecutor
from .support import T0, Place, append, end_transaction, idempotent, read_all, run

WEEK = 604_800_000


async def place_with_log(count=10, **values):
    place = Place(**{"segment_bytes": 300, **values})
    log = place.open()
    for i in range(count):
        await append(log, f"{i}a", f"{i}b", timestamp=T0 + 10 * i, epoch=i // 4)
    log.set_high_watermark(log.log_end_offset)
    return place, log


def bases(log):
    return [segment.base_offset for segment in log.segments]


def log_files(place):
    return [name for name in place.names() if name.endswith(".log")]


async def test_truncation_to_a_batch_boundary():
    place, log = await place_with_log()
    assert log.truncate_to(12)
    assert log.log_end_offset == log.high_watermark == 12
    assert [offset for offset, _ in read_all(log)] == list(range(12))
    assert log.epochs.entries() == [(0, 0), (1, 8)]
    assert await append(log, "new", epoch=9) == 12
    assert read_all(log)[-1] == (12, "new")
    await log.close()
    assert read_all(place.open())[-1] == (12, "new")


async def test_truncation_amid_a_batch_removes_the_batch():
    _, log = await place_with_log()
    log.truncate_to(13)
    assert log.log_end_offset == 13
    assert read_all(log)[-1][0] == 11
    assert await append(log, "new") == 13


async def test_truncation_at_the_end_only_forgets_epochs_without_records():
    _, log = await place_with_log()
    log.epochs.assign(77, 20)
    assert not log.truncate_to(25)
    assert log.epochs.latest_epoch == 2
    assert log.log_end_offset == 20


async def test_truncated_segments_are_renamed_and_removed_later():
    place, log = await place_with_log(file_delete_delay_ms=5000)
    before = len(log_files(place))
    waiting = log.read(log.segments[-2].base_offset, 1 << 20).slice
    content = waiting.read()
    log.truncate_to(3)
    assert len(log_files(place)) == 1
    assert sum(name.endswith(".log.deleted") for name in place.names()) == before - 1
    place.clock.advance(4999)
    await place.services.chores.finish_due()
    assert any(name.endswith(".deleted") for name in place.names())
    place.clock.advance(1)
    await place.services.chores.finish_due()
    assert not any(name.endswith(".deleted") for name in place.names())
    assert waiting.read() == content  # who still sends it is not disturbed


async def test_truncation_before_the_first_segment_starts_anew():
    _, log = await place_with_log()
    log.advance_log_start(bases(log)[1])
    await log.delete_old_segments(T0)
    assert log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset, bases(log)) == (2, 2, [2])
    assert await append(log, "x") == 2


async def test_truncation_fully():
    place, log = await place_with_log()
    log.truncate_fully_and_start_at(1000)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1000, 1000, 1000)
    assert log.epochs.entries() == []
    assert await append(log, "x") == 1000
    log.truncate_fully_and_start_at(2000, 1500)
    assert (log.log_start_offset, log.log_end_offset) == (1500, 2000)
    assert len(log_files(place)) == 1


async def test_truncation_takes_back_producers():
    _, log = await place_with_log(0, segment_bytes=1 << 20)
    await log.append_as_leader(idempotent(["a"], 0), 0)
    log.roll()
    await log.append_as_leader(idempotent(["b"], 1), 0)
    await log.append_as_leader(idempotent(["c"], 2, transactional=True), 0)
    assert log.last_stable_offset == 0
    log.truncate_to(1)
    assert log.producer_state.entries[7].last_sequence == 0
    assert log.producer_state.first_unstable_offset is None
    assert (await log.append_as_leader(idempotent(["b"], 1), 0)).first_offset == 1


async def test_truncation_takes_back_aborted_transactions():
    _, log = await place_with_log(0)
    await log.append_as_leader(idempotent(["a"], 0, transactional=True), 0)
    await end_transaction(log, commit=False)
    log.truncate_to(1)
    assert log.segments.active.transactions() == []
    assert log.producer_state.first_unstable_offset == 0


async def test_transactions_that_were_over_are_over_after_a_truncation():
    """A follower's, say, that had more than the new leader: what is committed stays visible."""
    _, log = await place_with_log(0)
    await log.append_as_leader(idempotent(["a"], 0, transactional=True), 0)
    await end_transaction(log, commit=True)
    await append(log, "only here")
    log.set_high_watermark(2)
    assert log.last_stable_offset == 2
    log.truncate_to(2)
    assert log.last_stable_offset == 2


async def test_truncation_lowers_the_recovery_point_on_disk_too():
    place, log = await place_with_log()
    await log.flush()
    log.log_dir.write_checkpoint(layout.RECOVERY_POINTS, {("t", 0): 20, ("u", 1): 5})
    log.truncate_to(6)
    assert log.recovery_point == 6
    await place.services.chores.finish_due()
    assert place.memory.read(f"/data/{layout.RECOVERY_POINTS}") == b"0\n2\nt 0 6\nu 1 5\n"


async def test_a_flush_begun_before_a_truncation_says_nothing_about_what_came_after():
    place, log = await place_with_log(2)
    work, done = flushing.flush_up_to(log, 4)
    log.truncate_to(2)
    await append(log, "x", "y")
    work()
    done()
    assert log.recovery_point <= 2
    log.roll()
    log.truncate_to(1)
    await place.services.chores.finish_due()  # the flush up to 4 that the roll asked for
    assert log.recovery_point <= log.log_end_offset


async def test_retention_by_time():
    _, log = await place_with_log(retention_ms=1000)
    assert await log.delete_old_segments(T0 + 1000) == 0
    second = bases(log)[1]
    newest = T0 + 10 * (second // 2 - 1) + 1
    assert await log.delete_old_segments(newest + 1000) == 0
    assert await log.delete_old_segments(newest + 1001) == 1
    assert bases(log)[0] == log.log_start_offset == second
    assert read_all(log)[0][0] == second


async def test_retention_by_time_may_take_the_active_segment():
    _, log = await place_with_log(retention_ms=1000)
    assert await log.delete_old_segments(T0 + WEEK) == 4
    assert (bases(log), log.log_start_offset, log.size) == ([20], 20, 0)
    assert await append(log, "x") == 20
    assert await log.delete_old_segments(0) == 0


async def test_an_empty_log_is_left_alone():
    log = Place(retention_ms=1, retention_bytes=0).open()
    assert await log.delete_old_segments(T0 + WEEK) == 0
    assert bases(log) == [0]


async def test_retention_by_size():
    _, log = await place_with_log(retention_ms=-1, retention_bytes=0)
    log.config = Place(retention_ms=-1, retention_bytes=log.size).config
    assert await log.delete_old_segments(T0) == 0
    log.config = Place(retention_ms=-1, retention_bytes=log.size - log.segments.first.size + 1).config
    assert await log.delete_old_segments(T0) == 0
    log.config = Place(retention_ms=-1, retention_bytes=log.size - log.segments.first.size).config
    assert await log.delete_old_segments(T0) == 1
    log.config = Place(retention_ms=-1, retention_bytes=0).config
    await log.delete_old_segments(T0)
    assert log.size == 0


async def test_nothing_above_the_high_watermark_is_deleted():
    place = Place(segment_bytes=300, retention_bytes=0, retention_ms=0)
    log = place.open()
    for _ in range(6):
        await append(log, "xxxxx", "yyyyy")
    assert await log.delete_old_segments(T0 + WEEK) == 0
    log.set_high_watermark(bases(log)[1] + 1)
    assert await log.delete_old_segments(T0 + WEEK) == 1
    assert log.log_start_offset == bases(log)[0]


async def test_a_compacted_log_loses_only_what_is_before_its_start():
    _, log = await place_with_log(cleanup_policy=frozenset({"compact"}), retention_ms=0, retention_bytes=0)
    assert await log.delete_old_segments(T0 + WEEK) == 0
    log.advance_log_start(bases(log)[2] - 1)
    assert await log.delete_old_segments(T0 + WEEK) == 1
    log.advance_log_start(bases(log)[1])
    assert await log.delete_old_segments(T0 + WEEK) == 1


async def test_records_deleted_up_to_the_end():
    _, log = await place_with_log()
    log.advance_log_start(20)
    assert await log.delete_old_segments(T0) == 3
    assert read_all(log) == []
    assert log.log_start_offset == log.log_end_offset == 20


async def test_retention_of_a_log_that_was_opened_again():
    place, log = await place_with_log(retention_ms=1000)
    await log.close()
    again = place.open(high_watermark=20)
    assert all(segment.newest is None for segment in list(again.segments)[:-1])
    assert await again.delete_old_segments(T0 + 1091) == 3


async def test_records_without_a_time_age_with_their_file():
    place = Place(retention_ms=1000)
    log = place.open()
    await append(log, "x", timestamp=-1)
    log.set_high_watermark(1)
    place.clock.advance(1000)
    assert await log.delete_old_segments(place.clock.now) == 0
    place.clock.advance(1)
    assert await log.delete_old_segments(place.clock.now) == 1


async def test_retention_of_an_offline_log():
    _, log = await place_with_log()
    log.log_dir.fail("test", OSError("broken"))
    with pytest.raises(KafkaError):
        await log.delete_old_segments(T0)


async def test_snapshots_go_with_their_segments():
    place, log = await place_with_log(retention_ms=1000, file_delete_delay_ms=0)
    assert len(log.producer_state.snapshots) == 3
    await log.delete_old_segments(T0 + WEEK)
    await place.services.chores.finish_due()
    assert [name for name in place.names() if "snapshot" in name] == [layout.segment_name(20, ".snapshot")]


@pytest.mark.parametrize("call", range(30))
def test_a_crash_amid_a_truncation_leaves_no_hole(call):
    """Though everything was flushed, so that what is missing would pass for lost, and be gone around."""
    disk = SimulatedDisk()
    place = Place(disk, segment_bytes=300)
    log = place.open()
    for number in range(12):
        run(append, log, f"{number}" * 40)
    run(log.flush)
    assert len(log.segments) > 4
    disk.fault = kill_at(disk.calls + call)
    with suppress(Killed):
        log.truncate_to(2)
    disk.restart()
    again = place.open(clean=False, recovery_point=12)
    assert [offset for offset, _ in read_all(again)] == list(range(again.log_end_offset))
    assert again.log_end_offset >= 2


async def test_what_is_appended_while_retention_waits_for_the_disk_stays(nursery):
    """Of a tiered log, whose epochs are to be there first; its active segment is too old."""
    place = Place(remote_storage_enable=True, remote_log_copy_disable=True, retention_ms=1000)
    place.executor = executor = HeldExecutor()
    log = place.open()
    await append(log, "old")
    log.set_high_watermark(1)
    place.clock.advance(WEEK)
    executor.held = True
    nursery.start_soon(log.delete_old_segments, place.clock.now)
    await wait_all_tasks_blocked()
    assert log.commits is not None, "it waits for no flush"
    assert await append(log, "new", timestamp=place.clock.now) == 1
    log.set_high_watermark(2)
    while executor.waiting:
        await executor.let_go()
    assert [segment.base_offset for segment in log.segments] == [1]
    assert read_all(log, 1) == [(1, "new")]


async def test_where_copies_are_switched_off_the_log_begins_behind_what_goes():
    """KIP-950: what goes from here was not copied, so that nobody could read it any more."""
    _, log = await place_with_log(remote_storage_enable=True, remote_log_copy_disable=True, retention_ms=1000)
    assert await log.delete_old_segments(T0 + WEEK)
    assert log.log_start_offset == log.segments.first.base_offset > 0


async def test_no_segment_goes_from_here_before_the_disk_knows_which_epochs_began_in_it():
    """Of a tiered log: its copy is found by the epochs, and what else tells of them is in the segment's batches."""
    place, log = await place_with_log(remote_storage_enable=True, local_retention_bytes=1, file_delete_delay_ms=0)
    epochs = log.epochs.entries()
    assert len(epochs) == 3
    log.tiered_end_offset = log.segments.active.base_offset
    assert await log.delete_old_segments(T0)
    began = {start for _, start in epochs}
    assert log.segments.first.base_offset not in began, "one of them began in a segment that is gone"
    again = place.open(clean=False, high_watermark=log.log_end_offset)
    assert again.epochs.entries() == epochs
