"""A log that is moved to another log dir, while it is written and read."""

from __future__ import annotations

import errno

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage import checkpoints, layout, reserve
from kwire.storage.moving.copying import complete
from kwire.storage.moving.future import SegmentCopy
from tests.storage.house import OTHER_ID, House, broken
from tests.storage.support import T0, append, config, end_transaction, idempotent, placed, read_all

from .movers import ONE, THREE, TWO, a_log, files_of, folders, moved, moving


async def test_a_log_goes_on_in_the_other_dir_as_it_was(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed, file_delete_delay_ms=0)
    for number in range(30):
        await append(log, f"record {number}", "x" * number, epoch=number // 10)
    await log.append_as_leader(idempotent(["a"], 0), 3)
    guard = log.begin_verification(9, 0, 0, supports_epoch_bump=False)
    await log.append_as_leader(idempotent(["aborted"], 0, 9, transactional=True), 3, verification=guard)
    await end_transaction(log, 9, commit=False, epoch=0)
    log.set_high_watermark(log.log_end_offset)
    log.advance_log_start(7)
    before = read_all(log)
    files, waiting = files_of(house, f"{ONE}/t-0"), log.read(7, 500).slice
    seen = log.read(7, 1 << 20)
    aborted = log.aborted(7, seen)
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        assert (log.dir, folders(house, TWO)) == (f"{ONE}/t-0", [])
        await moved(log, managed.dirs[1])
    assert managed.get("t", 0) is log
    assert managed.moves.futures == {}
    assert (log.dir, folders(house, ONE), folders(house, TWO)) == (f"{TWO}/t-0", [], ["t-0"])
    assert read_all(log) == before
    assert log.aborted(7, seen) == aborted
    assert waiting is not None
    assert waiting.read()
    copied = files_of(house, f"{TWO}/t-0")
    segments = [name for name in files if name.endswith((layout.LOG, layout.SNAPSHOT, layout.PARTITION_METADATA))]
    assert {name: copied[name] for name in segments} == {name: files[name] for name in segments}
    assert (await log.append_as_leader(idempotent(["a"], 0), 3)).duplicate
    await log.append_as_leader(idempotent(["b"], 1), 3)
    await managed.services.chores.finish_due()
    assert folders(house, ONE, layout.DELETE_DIR) == []
    after, epochs, producers = read_all(log), log.epochs.entries(), dict(log.producer_state.entries)
    await house.stop(managed)
    managed = await house.start()
    log = managed.logs["t", 0]
    assert (log.dir, read_all(log), log.log_start_offset) == (f"{TWO}/t-0", after, 7)
    assert log.epochs.entries() == epochs
    assert log.producer_state.entries.keys() == producers.keys()
    assert (await log.append_as_leader(idempotent(["b"], 1), 3)).duplicate


async def test_after_a_kill_right_behind_the_swap_nothing_is_missing(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    for number in range(30):
        await append(log, f"record {number}", epoch=number // 10)
    log.set_high_watermark(log.log_end_offset)
    log.advance_log_start(7)
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        while log.log_dir is managed.dirs[0]:
            await append(log, "more", epoch=3)
            await trio.lowlevel.checkpoint()
    before, epochs = read_all(log), log.epochs.entries()
    house.kill()
    log = (await house.start()).logs["t", 0]
    assert (log.dir, read_all(log), log.log_start_offset) == (f"{TWO}/t-0", before, 7)
    assert log.epochs.entries() == epochs


async def test_a_reserve_stays_behind(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed, segment_bytes=1 << 30)
    while not log.segments.active.reserve_end:
        await append(log, "x" * 60_000)
    before = read_all(log)
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        await moved(log, managed.dirs[1])
    active = log.segments.active
    assert (active.reserve_end, active.file.size()) == (0, active.size)
    assert read_all(log) == before
    while not active.reserve_end:
        await append(log, "x" * 60_000)
    assert reserve.follows(active.file, active.size, active.file.size())


async def test_it_is_written_and_read_meanwhile(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    expected = []
    async with moving(managed):
        for turn in range(3):
            target = managed.dirs[1 - turn % 2]
            await managed.moves.move(log, target)
            while log.log_dir is not target:
                offset = await append(log, f"record {len(expected)}")
                expected.append((offset, f"record {len(expected)}"))
                assert read_all(log, max(0, offset - 3)) == expected[-4:]
                found = await log.fetch(offset, 1000)
                assert found.slice is not None
                await trio.lowlevel.checkpoint()
    assert read_all(log) == expected
    assert len(expected) > 20


async def test_it_is_moved_on_before_the_last_move_is_over(autojump_clock) -> None:
    """The next one waits until the folder has the partition's name."""
    house = House([ONE, TWO, THREE])
    managed = await house.start()
    _, two, three = managed.dirs
    log = await a_log(managed)
    for number in range(40):
        await append(log, f"record {number}")
    synced = trio.Event()

    class SlowWorkers:
        """The sync of the dir that the log leaves takes long."""

        async def run(self, function, *arguments):
            if arguments == (ONE,):
                await synced.wait()
            return function(*arguments)

    managed.services.executor = SlowWorkers()
    async with moving(managed):
        await managed.moves.move(log, two)
        await moved(log, two)
        assert log.dir.endswith(layout.FUTURE_DIR)
        await managed.moves.move(log, three)
        while managed.moves.futures["t", 0].end_offset < 30:
            await trio.lowlevel.checkpoint()
        await wait_all_tasks_blocked()
        assert log.log_dir is two
        synced.set()
        await moved(log, three)
    assert all(log_dir.online for log_dir in managed.dirs)
    assert read_all(log) == [(n, f"record {n}") for n in range(40)]


async def test_a_truncation_meanwhile(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    for number in range(40):
        await log.append_as_follower(placed(number, [f"record {number}"]))
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        future = managed.moves.futures["t", 0]
        while future.end_offset < 30:
            await trio.lowlevel.checkpoint()
        log.truncate_to(12)
        for number in range(12, 40):
            await log.append_as_follower(placed(number, [f"other {number}"], epoch=1))
        await moved(log, managed.dirs[1])
    expected = [(n, f"record {n}") for n in range(12)] + [(n, f"other {n}") for n in range(12, 40)]
    assert read_all(log) == expected
    house.kill()
    assert read_all((await house.start()).logs["t", 0]) == expected


async def test_what_an_interrupted_move_left_of_an_index_goes() -> None:
    """Of what was there before it was compacted: aborted transactions, of which none is left."""
    house = House([ONE, TWO])
    log = await a_log(await house.start())
    await append(log, "a")
    segment = log.segments.active
    begun, index = (f"{TWO}/{layout.segment_name(0, suffix)}" for suffix in (layout.LOG, layout.TRANSACTION_INDEX))
    house.files.write(begun, house.files.read(segment.path(layout.LOG)))
    house.files.write(index, b"of another segment")
    copy = SegmentCopy(segment, segment.version, house.files.open(begun))
    complete(house.files, copy, begun.removesuffix(layout.LOG))
    assert not house.files.exists(index)


async def test_a_log_that_is_empty(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    managed.config = managed.config.with_dynamic({"replica.alter.log.dirs.io.max.bytes.per.second": "0"}, {})
    log = await a_log(managed)
    log.truncate_fully_and_start_at(17)
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        await moved(log, managed.dirs[1])
    assert await append(log, "a") == 17
    house.kill()
    assert read_all((await house.start()).logs["t", 0]) == [(17, "a")]


async def test_another_target_and_back(autojump_clock) -> None:
    house = House([ONE, TWO, THREE], num_replica_alter_log_dirs_threads="1")
    managed = await house.start()
    one, two, three = managed.dirs
    log = await a_log(managed)
    for number in range(40):
        await append(log, f"record {number}")
    async with moving(managed):
        await managed.moves.move(log, two)
        first = managed.moves.futures["t", 0]
        while not first.size:
            await trio.lowlevel.checkpoint()
        await managed.moves.move(log, two)
        assert managed.moves.futures["t", 0] is first
        await managed.moves.move(log, three)
        assert managed.moves.futures["t", 0].log_dir is three
        assert (folders(house, TWO, layout.FUTURE_DIR), len(folders(house, THREE, layout.FUTURE_DIR))) == ([], 1)
        await managed.moves.move(log, one)
        assert managed.moves.futures == {}
        await managed.moves.move(log, one)
    assert [folders(house, root, layout.FUTURE_DIR) for root in house.dirs] == [[], [], []]
    assert log.dir == f"{ONE}/t-0"
    assert len(read_all(log)) == 40


async def test_the_partition_is_deleted_meanwhile(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed, file_delete_delay_ms=0)
    for number in range(40):
        await append(log, f"record {number}")
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        while not managed.moves.futures["t", 0].size:
            await trio.lowlevel.checkpoint()
        assert await managed.delete([("t", 0)]) == 1
    assert managed.moves.futures == {}
    await managed.services.chores.finish_due()
    for root in house.dirs:
        assert [name for name in house.files.list(root) if layout.parse_partition_dir(name)] == []
    again = await managed.get_or_create("t", 0, OTHER_ID, config(), directory=managed.dirs[1].id)
    assert read_all(again) == []
    assert all(log_dir.online for log_dir in managed.dirs)


async def test_the_dir_to_which_it_moves_fails(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    for number in range(40):
        await append(log, f"record {number}")
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        while not managed.moves.futures["t", 0].size:
            await trio.lowlevel.checkpoint()
        house.files.fault = broken(TWO)
        while managed.dirs[1].online:
            await trio.lowlevel.checkpoint()
        assert managed.moves.futures == {}
        assert await append(log, "on") == 40
        with pytest.raises(KafkaError) as refused:
            await managed.moves.move(log, managed.dirs[1])
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    house.files.fault = None
    await house.stop(managed)
    managed = await house.start()
    log = managed.logs["t", 0]
    async with moving(managed):  # the request is older than the failure, and still stands
        await moved(log, managed.dirs[1])
    assert len(read_all(log)) == 41


async def test_the_dir_from_which_it_moves_fails(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    for number in range(40):
        await append(log, f"record {number}")
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        while not managed.moves.futures["t", 0].size:
            await trio.lowlevel.checkpoint()
        house.files.fault = broken(ONE)
        while managed.dirs[0].online:
            await trio.lowlevel.checkpoint()
        assert managed.moves.futures["t", 0].source_gone
        assert managed.get("t", 0) is None
    house.kill()
    managed = await house.start()
    assert managed.logs == {}
    assert len(folders(house, TWO, layout.FUTURE_DIR)) == 1
    house.kill()
    house.files.fault = None
    managed = await house.start()
    log = managed.logs["t", 0]
    assert log.log_dir is managed.dirs[0]
    async with moving(managed):
        await moved(log, managed.dirs[1])
    assert len(read_all(log)) == 40


async def test_what_was_copied_before_a_kill_is_not_copied_again(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    for number in range(40):
        await append(log, f"record {number}")
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        while managed.moves.futures["t", 0].end_offset < 30:
            await trio.lowlevel.checkpoint()
    (future,) = folders(house, TWO, layout.FUTURE_DIR)
    house.kill()
    managed = await house.start()
    log = managed.logs["t", 0]
    written = 0

    def count(operation: str, path: str, size: int) -> None:
        nonlocal written
        written += size if operation == "write" and path.startswith(TWO) and path.endswith(layout.LOG) else 0

    house.files.fault = count
    async with moving(managed):
        await moved(log, managed.dirs[1])
    assert 0 < written < log.size // 2
    assert len(read_all(log)) == 40
    assert not house.files.exists(f"{TWO}/{future}")


async def test_a_copy_that_differs_is_replaced(autojump_clock) -> None:
    """What a power cut, or another hand, made of it."""
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    for number in range(40):
        await append(log, f"record {number}")
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        while managed.moves.futures["t", 0].end_offset < 30:
            await trio.lowlevel.checkpoint()
    (future,) = folders(house, TWO, layout.FUTURE_DIR)
    house.kill()
    house.files.open(f"{TWO}/{future}/{layout.segment_name(0, layout.LOG)}").pwrite([b"zeros"], 300)
    house.files.write(f"{TWO}/{future}/{layout.segment_name(3, layout.LOG)}", b"no segment of the log")
    active = log.segments.active
    house.files.open(f"{TWO}/{future}/{layout.segment_name(active.base_offset, layout.LOG)}", create=True).pwrite(
        [b"more than there is"], active.size + 100
    )
    managed = await house.start()
    log = managed.logs["t", 0]
    async with moving(managed):
        await moved(log, managed.dirs[1])
    assert read_all(log) == [(n, f"record {n}") for n in range(40)]
    house.kill()
    assert read_all((await house.start()).logs["t", 0]) == [(n, f"record {n}") for n in range(40)]


async def test_between_the_renames_there_is_the_copy_alone(autojump_clock, caplog) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    for number in range(40):
        await append(log, f"record {number}")
    log.set_high_watermark(40)
    log.advance_log_start(3)
    await managed.upkeep.write_high_watermarks()
    assert said_in(house, ONE) == {log.key: 40}
    renamed = []

    def second_fails(operation: str, path: str, size: int) -> None:
        if operation == "rename" and path.startswith((f"{ONE}/t-0", f"{TWO}/t-0")):
            renamed.append(path)
            if len(renamed) > 1:
                raise OSError(errno.EIO, "Input/output error", path)

    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        house.files.fault = second_fails
        while managed.dirs[1].online:
            await trio.lowlevel.checkpoint()
    house.files.fault = None
    await managed.upkeep.write_high_watermarks()
    assert said_in(house, ONE) == {}  # a new topic of that name may come there
    house.kill()
    assert (folders(house, ONE), folders(house, TWO)) == ([], [])
    managed = await house.start()
    assert "which takes its place" in caplog.text
    log = managed.logs["t", 0]
    assert (log.dir, log.log_start_offset) == (f"{TWO}/t-0", 3)
    assert read_all(log) == [(n, f"record {n}") for n in range(3, 40)]
    assert await append(log, "on") == 40


async def test_a_damaged_log_stays_where_it_is(autojump_clock, caplog) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    for number in range(40):
        await append(log, f"record {number}")
    house.files.open(f"{ONE}/t-0/{layout.segment_name(0, layout.LOG)}").pwrite([b"?"], 75)
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        while "CRC is wrong" not in caplog.text:
            await trio.lowlevel.checkpoint()
        assert ("t", 0) in managed.moves.futures
        await managed.moves.move(log, managed.dirs[0])
    assert all(log_dir.online for log_dir in managed.dirs)
    assert folders(house, TWO, layout.FUTURE_DIR) == []


async def test_a_future_log_of_another_topic_is_removed(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    await a_log(managed)
    house.files.make_dirs(f"{TWO}/{layout.future_dir_name('t', 0, bytes(16))}")
    house.files.write(
        f"{TWO}/{layout.future_dir_name('t', 0, bytes(16))}/{layout.PARTITION_METADATA}",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
    )
    house.kill()
    managed = await house.start()
    assert managed.moves.futures == {}
    await managed.services.chores.finish_due()
    assert folders(house, TWO, layout.FUTURE_DIR) == []


async def test_a_flush_meanwhile_is_one_of_the_files_that_count(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed, flush_messages=1)
    appended = []
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        while log.log_dir is managed.dirs[0]:
            offset = await append(log, f"record {len(appended)}")
            appended.append((offset, f"record {len(appended)}"))
    await append(log, "last")
    house.files.lose_power()
    log = (await house.start()).logs["t", 0]
    assert read_all(log)[: len(appended)] == appended


async def test_a_dir_on_its_way_counts_for_the_next_partition(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed, 0)
    await a_log(managed, 1, managed.dirs[1])
    await managed.moves.move(log, managed.dirs[1])
    for partition in (2, 3, 4):
        await managed.get_or_create("t", partition, OTHER_ID, config())
    assert [managed.logs["t", number].dir for number in (2, 3, 4)] == [f"{ONE}/t-2", f"{ONE}/t-3", f"{TWO}/t-4"]


async def test_look_ups_by_time_meanwhile(autojump_clock) -> None:
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed, segment_bytes=200)
    for number in range(40):
        await append(log, f"record {number}", timestamp=T0 + number)
    await house.stop(managed)
    managed = await house.start()
    log = managed.logs["t", 0]
    async with moving(managed):
        await managed.moves.move(log, managed.dirs[1])
        while log.log_dir is managed.dirs[0]:
            for wanted in range(0, 40, 7):
                found = await log.offset_for_timestamp(T0 + wanted)
                assert found is not None
                assert found.offset == wanted


async def test_the_high_watermark_of_a_log_that_moved_is_written_where_it_is(autojump_clock) -> None:
    """However it was noted in the dir that it left."""
    house = House([ONE, TWO])
    managed = await house.start()
    log = await a_log(managed)
    await append(log, "a")
    await managed.upkeep.write_high_watermarks()
    log.advance_high_watermark(1)
    async with moving(managed):
        for target, offset in ((managed.dirs[1], 2), (managed.dirs[0], 3)):
            await managed.moves.move(log, target)
            await moved(log, target)
            await append(log, "a")
            log.advance_high_watermark(offset)
            await managed.upkeep.write_high_watermarks()
            await append(log, "a")
            log.advance_high_watermark(offset + 1)
            await managed.upkeep.write_high_watermarks()
            said = {root: said_in(house, root) for root in (ONE, TWO)}
            assert said == {ONE: {}, TWO: {}, target.path: {log.key: offset + 1}}


def said_in(house: House, root: str) -> dict[tuple[str, int], int]:
    return dict(checkpoints.decode_offsets(house.files.read(f"{root}/{layout.HIGH_WATERMARKS}")))
