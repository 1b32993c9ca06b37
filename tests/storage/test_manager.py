"""All logs of a broker over starts, stops and kills."""

import pytest
import trio

from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage import layout

from .house import NOT_CLEAN, OTHER_ID, House, broken
from .support import ROOT, T0, TOPIC_ID, append, config, idempotent, placed, read_all


async def test_logs_come_back_after_a_clean_stop(caplog):
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    assert managed.get("t", 0) is log
    await append(log, "a", "b", "c")
    log.set_high_watermark(3)
    log.advance_log_start(1)
    await house.stop(managed, 42)
    assert house.files.read(f"{ROOT}/{layout.CLEAN_SHUTDOWN}") == b'{"version":0,"brokerEpoch":42}'
    assert house.files.read(f"{ROOT}/{layout.RECOVERY_POINTS}") == b"0\n1\nt 0 3\n"
    assert house.files.read(f"{ROOT}/{layout.HIGH_WATERMARKS}") == b"0\n1\nt 0 3\n"
    assert house.files.read(f"{ROOT}/{layout.LOG_START_OFFSETS}") == b"0\n1\nt 0 1\n"
    managed = await house.start()
    assert not house.files.exists(f"{ROOT}/{layout.CLEAN_SHUTDOWN}")
    assert NOT_CLEAN not in caplog.text
    log = managed.get("t", 0)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.topic_id) == (1, 3, 3, TOPIC_ID)
    assert read_all(log) == [(1, "b"), (2, "c")]


async def test_logs_come_back_after_a_kill(caplog):
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    await append(log, "a", "b", "c")
    house.kill()
    managed = await house.start()
    assert caplog.text.count(NOT_CLEAN) == 1
    assert read_all(managed.get("t", 0)) == [(0, "a"), (1, "b"), (2, "c")]
    house.kill()  # before anything was written: the marker is gone already
    await house.start()
    assert caplog.text.count(NOT_CLEAN) == 2


async def test_many_logs_are_loaded():
    house = House()
    managed = await house.start()
    for partition in range(100):
        await append(await managed.get_or_create("t", partition, TOPIC_ID, config()), str(partition))
    await house.stop(managed)
    managed = await house.start()
    assert len(managed.logs) == 100
    assert read_all(managed.get("t", 77)) == [(0, "77")]


@pytest.mark.parametrize("count", [3, 40])
async def test_a_power_cut_after_a_clean_stop_costs_nothing(count, caplog):
    house = House()
    managed = await house.start()
    for partition in range(count):
        log = await managed.get_or_create("t", partition, TOPIC_ID, config())
        await log.append_as_leader(idempotent([str(partition)], 0), 4)
    await house.stop(managed)
    house.files.lose_power()
    managed = await house.start()
    assert NOT_CLEAN not in caplog.text
    for partition in range(count):
        log = managed.get("t", partition)
        assert read_all(log) == [(0, str(partition))]
        assert log.epochs.entries() == [(4, 0)]
        assert house.files.read(log.producer_state.snapshot_path(1))
        assert 7 in log.producer_state.entries


async def test_the_topics_config_is_used():
    house = House()
    managed = await house.start()
    await managed.get_or_create("t", 0, TOPIC_ID, config())
    await house.stop(managed)
    house.topics["t"] = config(segment_bytes=12345)
    assert (await house.start()).get("t", 0).config.segment_bytes == 12345


async def test_a_log_is_made_once():
    house = House()
    managed = await house.start()
    logs = []

    async def ask():
        logs.append(await managed.get_or_create("t", 0, TOPIC_ID, config()))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert len(set(map(id, logs))) == 1


async def test_topic_ids():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, uuids.ZERO, config())
    assert log.topic_id is None
    assert (await managed.get_or_create("t", 0, TOPIC_ID, config())).topic_id == TOPIC_ID
    with pytest.raises(KafkaError) as refused:
        await managed.get_or_create("t", 0, OTHER_ID, config())
    assert refused.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
    await house.stop(managed)
    assert (await house.start()).get("t", 0).topic_id == TOPIC_ID


async def test_a_deleted_partition_goes_later_and_its_name_begins_anew():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(file_delete_delay_ms=5000))
    await append(log, "a", "b")
    log.set_high_watermark(2)
    log.advance_log_start(1)
    await managed.upkeep.checkpoint_dir(managed.dirs[0])
    waiting = log.read(1, 1000).slice
    assert await managed.delete([("t", 0)])
    assert not await managed.delete([("t", 0)])
    assert managed.get("t", 0) is None
    (renamed,) = [name for name in house.files.list(ROOT) if name.endswith(layout.DELETE_DIR)]
    assert layout.parse_partition_dir(renamed) == ("t", 0, layout.DELETE_DIR)
    for name in (layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS, layout.LOG_START_OFFSETS):
        assert house.files.read(f"{ROOT}/{name}") == b"0\n0\n"
    again = await managed.get_or_create("t", 0, OTHER_ID, config())
    assert (again.log_start_offset, again.log_end_offset, again.topic_id) == (0, 0, OTHER_ID)
    house.clock.advance(5000)
    await managed.services.chores.finish_due()
    assert renamed not in house.files.list(ROOT)
    assert waiting.read()
    await append(again, "new")
    await log.services.chores.finish_due()
    assert read_all(again) == [(0, "new")]


async def test_what_was_under_way_for_a_deleted_partition_does_not_touch_its_successor():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    await append(log, "a", epoch=5)
    log.roll()  # leaves a flush to do, which would write the leader epochs
    await managed.delete([("t", 0)])
    again = await managed.get_or_create("t", 0, OTHER_ID, config())
    await managed.services.chores.finish_due()
    assert again.epochs.entries() == []
    assert house.files.read(f"{again.dir}/{layout.LEADER_EPOCHS}") == b""


async def test_a_partition_deleted_before_a_stop_is_removed_after_it():
    house = House()
    managed = await house.start()
    await managed.get_or_create("t", 0, TOPIC_ID, config())
    await managed.delete([("t", 0)])
    await house.stop(managed)
    assert any(name.endswith(layout.DELETE_DIR) for name in house.files.list(ROOT))
    managed = await house.start()
    assert managed.logs == {}
    await managed.services.chores.finish_due()
    assert not any(name.endswith(layout.DELETE_DIR) for name in house.files.list(ROOT))


async def test_a_stray_partition_is_set_aside_and_stays():
    house = House()
    managed = await house.start()
    await append(await managed.get_or_create("t", 0, TOPIC_ID, config()), "a")
    assert await managed.set_aside([("t", 0)])
    assert not await managed.set_aside([("t", 0)])
    await house.stop(managed)
    managed = await house.start()
    assert managed.logs == {}
    assert [name for name in house.files.list(ROOT) if name.endswith(layout.STRAY_DIR)]


async def test_torn_checkpoints_cost_a_longer_recovery_only():
    house = House()
    managed = await house.start()
    await append(await managed.get_or_create("t", 0, TOPIC_ID, config()), "a")
    await house.stop(managed)
    for name in (layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS, layout.LOG_START_OFFSETS):
        house.files.write_atomically(f"{ROOT}/{name}", b"0\n99\nt")
    house.files.remove(f"{ROOT}/{layout.CLEAN_SHUTDOWN}")
    assert read_all((await house.start()).get("t", 0)) == [(0, "a")]


async def test_who_still_has_a_deleted_log_does_no_harm():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(file_delete_delay_ms=0))
    await append(log, "a")
    log.roll()
    await append(log, "b")
    await managed.delete([("t", 0)])
    house.clock.advance(1)
    await managed.services.chores.finish_due()

    async def reads():
        return log.read(0, 100)

    for use in (
        lambda: append(log, "c"),
        lambda: log.append_as_follower(placed(2, ["c"])),
        reads,
        lambda: log.fetch(0, 100),
        lambda: log.offset_for_timestamp(T0),
        lambda: log.delete_old_segments(T0),
        log.flush,
    ):
        with pytest.raises(KafkaError) as refused:
            await use()
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert managed.dirs[0].online


async def test_checkpoints_forget_a_partition_before_its_folder_goes():
    """Otherwise a crash in between would leave a new log of that name with the old one's start, beyond its end."""
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    await append(log, *"abcdef")
    log.set_high_watermark(6)
    log.advance_log_start(5)
    await managed.upkeep.checkpoint_dir(managed.dirs[0])
    said = []
    house.files.fault = lambda operation, path, size: (
        said.append(house.files.read(f"{ROOT}/{layout.LOG_START_OFFSETS}")) if operation == "rename" else None
    )
    await managed.delete([("t", 0)])
    assert said == [b"0\n0\n"]


async def test_a_dir_that_fails_amid_a_deletion_does_not_keep_the_others_files():
    house = House(["/a", "/b"])
    managed = await house.start()
    for partition in (0, 1):
        await managed.get_or_create("t", partition, TOPIC_ID, config(file_delete_delay_ms=0))
    house.files.fault = broken("/a", "rename")
    with pytest.raises(KafkaError) as failed:
        await managed.delete([("t", 0), ("t", 1)])
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    await managed.services.chores.finish_due()
    assert not any(name.startswith("t-1") for name in house.files.list("/b"))


async def test_a_log_without_producers_needs_no_snapshot_and_no_look_at_its_records():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    for _ in range(50):
        await append(log, "x" * 1000)
    await house.stop(managed)
    assert not any(name.endswith(layout.SNAPSHOT) for name in house.files.list(f"{ROOT}/t-0"))
    read = []
    house.files.fault = lambda operation, path, size: (
        read.append(size) if operation == "read" and path.endswith(layout.LOG) else None
    )
    managed = await house.start()
    assert sum(read) < 20_000
    house.files.fault = None
    log = managed.get("t", 0)
    await log.append_as_leader(idempotent(["p"], 0), 0)
    await house.stop(managed)
    log = (await house.start()).get("t", 0)
    assert log.producer_state.entries[7].last_sequence == 0


async def test_a_snapshot_without_producers_replaces_one_that_had_some():
    house = House(producer_id_expiration_ms="1000")
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    await log.append_as_leader(idempotent(["p"], 0), 0)
    await house.stop(managed)
    managed = await house.start()
    await append(managed.get("t", 0), "x")
    house.clock.advance(1000)
    managed.get("t", 0).producer_state.remove_expired(house.clock.now)
    await house.stop(managed)
    house.clock.set(-1000)
    assert (await house.start()).get("t", 0).producer_state.entries == {}


async def test_what_was_not_touched_is_not_written_by_a_stop():
    house = House()
    managed = await house.start()
    for partition in range(40):
        log = await managed.get_or_create("t", partition, TOPIC_ID, config())
        if partition % 2:
            await append(log, "a")
    await house.stop(managed)
    managed = await house.start()
    written = []
    house.files.fault = lambda operation, path, size: (
        written.append((operation, path)) if operation in ("write", "truncate", "open") else None
    )
    await house.stop(managed)
    assert {path for _, path in written} == {f"{ROOT}/{layout.CLEAN_SHUTDOWN}"}


async def test_a_clean_stop_of_empty_logs_makes_no_files():
    house = House()
    managed = await house.start()
    for partition in range(40):
        log = await managed.get_or_create("t", partition, TOPIC_ID, config())
        log.epochs.assign(3, 0)  # as its leader does
    await house.stop(managed)
    assert house.files.list(f"{ROOT}/t-9") == [
        layout.segment_name(0, layout.LOG),
        layout.LEADER_EPOCHS,
        layout.PARTITION_METADATA,
    ]
    assert house.files.read(f"{ROOT}/t-9/{layout.LEADER_EPOCHS}") == b""
    log = (await house.start()).get("t", 9)
    assert await append(log, "a", epoch=4) == 0


async def test_an_epoch_without_a_record_is_not_worth_a_write_when_the_log_is_closed():
    house = House()
    managed = await house.start()
    await append(await managed.get_or_create("t", 0, TOPIC_ID, config()), "a", epoch=3)
    await house.stop(managed)
    managed = await house.start()
    log = managed.get("t", 0)
    log.epochs.assign(5, 1)
    written = []
    house.files.fault = lambda operation, path, size: (
        written.append(path) if operation == "write" and path.endswith(layout.LEADER_EPOCHS) else None
    )
    await house.stop(managed)
    assert written == []
    managed = await house.start()
    log = managed.get("t", 0)
    assert log.epochs.entries() == [(3, 0)]
    await append(log, "b", epoch=6)
    await house.stop(managed)
    assert (await house.start()).get("t", 0).epochs.entries() == [(3, 0), (6, 1)]
