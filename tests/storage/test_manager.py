import errno

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kwire.config.topic import LogConfig
from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage import layout
from kwire.storage.log_dir import LogDirError

from .support import CLUSTER, ROOT, T0, TOPIC_ID, ManualClock, append, config, idempotent, manager, placed, read_all

OTHER_ID = bytes(range(1, 17))


class House:
    """A broker's log dirs over several runs of its manager."""

    def __init__(self, dirs=(ROOT,), **keys):
        self.clock = ManualClock()
        self.files = MemoryFileSystem(self.clock)
        self.dirs = dirs
        self.keys = keys
        self.topics = {}

    async def start(self, cluster=CLUSTER, node=1):
        managed = manager(self.files, self.clock, self.dirs, **self.keys)
        await managed.lock()
        await managed.load(cluster, node, lambda topic: self.topics.get(topic, LogConfig()))
        return managed

    async def stop(self, managed, epoch=7):
        await managed.close(epoch)
        managed.unlock()

    def kill(self):
        self.files.kill_holder()


async def test_a_new_dir():
    house = House()
    managed = manager(house.files, house.clock)
    assert await managed.lock() is None
    await managed.load(CLUSTER, 3, lambda topic: LogConfig())
    assert managed.clean_start
    assert managed.logs == {}
    properties = house.files.read(f"{ROOT}/{layout.META_PROPERTIES}").decode().split()
    assert properties[1:] == [
        f"cluster.id={CLUSTER}",
        f"directory.id={uuids.to_text(managed.dirs[0].id)}",
        "node.id=3",
        "version=1",
    ]
    again = house.files.read(f"{ROOT}/{layout.META_PROPERTIES}")
    managed.unlock()
    managed = manager(house.files, house.clock)
    assert await managed.lock() == CLUSTER
    await managed.load(CLUSTER, 3, lambda topic: LogConfig())
    assert house.files.read(f"{ROOT}/{layout.META_PROPERTIES}") == again


async def test_logs_come_back_after_a_clean_stop():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    assert managed.get("t", 0) is log
    await append(log, "a", "b", "c")
    log.high_watermark = 3
    log.advance_log_start(1)
    await house.stop(managed, 42)
    assert house.files.read(f"{ROOT}/{layout.CLEAN_SHUTDOWN}") == b'{"version":0,"brokerEpoch":42}'
    assert house.files.read(f"{ROOT}/{layout.RECOVERY_POINTS}") == b"0\n1\nt 0 3\n"
    assert house.files.read(f"{ROOT}/{layout.HIGH_WATERMARKS}") == b"0\n1\nt 0 3\n"
    assert house.files.read(f"{ROOT}/{layout.LOG_START_OFFSETS}") == b"0\n1\nt 0 1\n"
    managed = await house.start()
    assert not house.files.exists(f"{ROOT}/{layout.CLEAN_SHUTDOWN}")
    assert (managed.clean_start, managed.previous_broker_epoch) == (True, 42)
    log = managed.get("t", 0)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.topic_id) == (1, 3, 3, TOPIC_ID)
    assert read_all(log) == [(1, "b"), (2, "c")]


async def test_logs_come_back_after_a_kill():
    house = House()
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    await append(log, "a", "b", "c")
    house.kill()
    managed = await house.start()
    assert (managed.clean_start, managed.previous_broker_epoch) == (False, -1)
    assert read_all(managed.get("t", 0)) == [(0, "a"), (1, "b"), (2, "c")]
    house.kill()  # before anything was written: the marker is gone already
    assert not (await house.start()).clean_start


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
async def test_a_power_cut_after_a_clean_stop_costs_nothing(count):
    house = House()
    managed = await house.start()
    for partition in range(count):
        log = await managed.get_or_create("t", partition, TOPIC_ID, config())
        await log.append_as_leader(idempotent([str(partition)], 0), 4)
    await house.stop(managed)
    house.files.lose_power()
    managed = await house.start()
    assert managed.clean_start
    for partition in range(count):
        log = managed.get("t", partition)
        assert read_all(log) == [(0, str(partition))]
        assert log.epochs.entries() == [(4, 0)]
        assert 7 in log.producer_state.entries


async def test_the_topics_config_is_used():
    house = House()
    managed = await house.start()
    await managed.get_or_create("t", 0, TOPIC_ID, config())
    await house.stop(managed)
    house.topics["t"] = config(segment_bytes=12345)
    assert (await house.start()).get("t", 0).config.segment_bytes == 12345


async def test_a_second_broker_is_refused():
    house = House()
    managed = await house.start()
    with pytest.raises(LogDirError, match=f"{ROOT} is in use by another broker"):
        await manager(house.files, house.clock).lock()
    await house.stop(managed)
    await house.start()


@pytest.mark.parametrize(
    ("cluster", "node", "message"),
    [("AAAAAAAAAAAAAAAAAAAAAA", 1, "cluster.id=7d8X9wEhQ0iNjRJ6QKIW2A, but"), (CLUSTER, 2, "node.id=1, but")],
)
async def test_a_dir_of_another_broker_is_refused(cluster, node, message):
    house = House()
    await house.stop(await house.start())
    with pytest.raises(LogDirError, match=message):
        await house.start(cluster, node)


@pytest.mark.parametrize("content", [b"version=2\n", b"\xff\xfe", b"version=1\ndirectory.id=x\n"])
async def test_meta_properties_that_are_not_understood(content):
    house = House()
    house.files.make_dirs(ROOT)
    house.files.write_atomically(f"{ROOT}/{layout.META_PROPERTIES}", content)
    with pytest.raises(LogDirError, match=layout.META_PROPERTIES):
        await house.start()


async def test_dirs_of_two_clusters_are_refused():
    house = House(["/a", "/b"])
    house.dirs = ["/a"]
    await house.stop(await house.start())
    house.dirs = ["/b"]
    await house.stop(await house.start("AAAAAAAAAAAAAAAAAAAAAA"))
    house.dirs = ["/a", "/b"]
    with pytest.raises(LogDirError, match="different clusters"):
        await house.start()


async def test_a_partition_in_two_dirs_is_refused():
    house = House(["/a"])
    managed = await house.start()
    await managed.get_or_create("t", 0, TOPIC_ID, config())
    await house.stop(managed)
    house.dirs = ["/b"]
    managed = await house.start()
    await managed.get_or_create("t", 0, TOPIC_ID, config())
    await house.stop(managed)
    house.dirs = ["/a", "/b"]
    with pytest.raises(LogDirError, match="t-0 is in two log dirs, /a and /b"):
        await house.start()


async def test_partitions_are_placed_on_the_dir_with_the_fewest():
    house = House(["/a", "/b"])
    managed = await house.start()
    for partition in range(4):
        await managed.get_or_create("t", partition, TOPIC_ID, config())
    assert [len(managed.logs_in(log_dir)) for log_dir in managed.dirs] == [2, 2]
    for partition in range(4, 7):
        await managed.get_or_create("t", partition, TOPIC_ID, config(), directory=managed.dirs[1].id)
    assert [len(managed.logs_in(log_dir)) for log_dir in managed.dirs] == [2, 5]
    await managed.get_or_create("t", 7, TOPIC_ID, config())
    assert managed.get("t", 7).dir == "/a/t-7"


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
    log.high_watermark = 2
    log.advance_log_start(1)
    await managed.checkpoint()
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
    assert not house.files.exists(f"{again.dir}/{layout.LEADER_EPOCHS}")


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


def broken(path):
    def fault(operation, where, size):
        if where.startswith(path):
            raise OSError(errno.EIO, "Input/output error", where)

    return fault


async def test_a_dir_that_fails_goes_offline_and_the_others_go_on():
    house = House(["/a", "/b"])
    managed = await house.start()
    gone = []
    managed.on_offline = lambda log_dir, logs: gone.append((log_dir.path, [log.name for log in logs]))
    first = await managed.get_or_create("t", 0, TOPIC_ID, config())
    second = await managed.get_or_create("t", 1, TOPIC_ID, config())
    await append(first, "a")
    house.files.fault = broken("/a")
    with pytest.raises(KafkaError) as failed:
        await append(first, "b")
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert gone == [("/a", ["t-0"])]
    assert managed.get("t", 0) is None
    assert "Input/output error" in managed.dirs[0].offline_reason
    assert await append(second, "b") == 0
    with pytest.raises(KafkaError) as unknown:
        await managed.get_or_create("t", 2, TOPIC_ID, config())
    assert unknown.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (await managed.get_or_create("t", 2, TOPIC_ID, config(), is_new=True)).dir == "/b/t-2"
    await managed.close(1)
    managed.unlock()
    house.files.fault = None
    assert not house.files.exists(f"/a/{layout.CLEAN_SHUTDOWN}")
    assert house.files.exists(f"/b/{layout.CLEAN_SHUTDOWN}")
    managed = await house.start()
    assert not managed.clean_start
    assert read_all(managed.get("t", 0)) == [(0, "a")]


async def test_a_dir_that_cannot_be_used_at_the_start_is_offline():
    house = House(["/a", "/b"])
    house.files.fault = broken("/a")
    managed = await house.start()
    assert [log_dir.online for log_dir in managed.dirs] == [False, True]
    house.dirs = ["/a"]
    with pytest.raises(LogDirError, match=r"none of the log dirs can be used: .*Input/output error"):
        await house.start()


async def test_creation_on_a_failing_dir():
    house = House()
    managed = await house.start()
    house.files.fault = broken(f"{ROOT}/t-0")
    with pytest.raises(KafkaError) as failed:
        await managed.get_or_create("t", 0, TOPIC_ID, config())
    assert failed.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        await managed.get_or_create("t", 1, TOPIC_ID, config(), is_new=True)


async def test_a_controllers_own_log_and_strange_names_are_left_alone():
    house = House()
    for name in (layout.CLUSTER_METADATA_DIR, "lost+found", "notes-x"):
        house.files.make_dirs(f"{ROOT}/{name}")
    managed = await house.start()
    assert managed.logs == {}
    await house.stop(managed)
    assert {layout.CLUSTER_METADATA_DIR, "lost+found", "notes-x"} <= set(house.files.list(ROOT))


async def test_torn_checkpoints_cost_a_longer_recovery_only():
    house = House()
    managed = await house.start()
    await append(await managed.get_or_create("t", 0, TOPIC_ID, config()), "a")
    await house.stop(managed)
    for name in (layout.RECOVERY_POINTS, layout.HIGH_WATERMARKS, layout.LOG_START_OFFSETS):
        house.files.write_atomically(f"{ROOT}/{name}", b"0\n99\nt")
    house.files.remove(f"{ROOT}/{layout.CLEAN_SHUTDOWN}")
    assert read_all((await house.start()).get("t", 0)) == [(0, "a")]


async def test_the_loops(autojump_clock):
    house = House(
        log_retention_check_interval_ms="1000",
        log_flush_offset_checkpoint_interval_ms="2000",
        log_flush_start_offset_checkpoint_interval_ms="2000",
        replica_high_watermark_checkpoint_interval_ms="500",
        producer_id_expiration_check_interval_ms="1000",
    )
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(retention_ms=10, flush_ms=300, segment_bytes=300))
    quiet = await managed.get_or_create("t", 1, TOPIC_ID, config())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        for i in range(8):
            await append(log, "x" * 50, timestamp=T0 + i)
        await append(quiet, "x")
        log.high_watermark = 8
        await wait_all_tasks_blocked()  # the flushes of the rolls
        house.clock.advance(300)
        await trio.sleep(0.4)
        assert log.unflushed == 0  # flush.ms
        assert quiet.unflushed == 1
        await trio.sleep(0.2)
        assert house.files.read(f"{ROOT}/{layout.HIGH_WATERMARKS}") == b"0\n2\nt 0 8\nt 1 0\n"
        house.clock.advance(10_000)
        await trio.sleep(0.5)
        assert log.log_start_offset == 8  # retention.ms
        await trio.sleep(1)
        assert house.files.read(f"{ROOT}/{layout.RECOVERY_POINTS}") == b"0\n2\nt 0 8\nt 1 0\n"
        nursery.cancel_scope.cancel()


async def test_an_idle_broker_leaves_the_disk_alone(autojump_clock):
    house = House()
    managed = await house.start()
    await append(await managed.get_or_create("t", 0, TOPIC_ID, config()), "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(managed.run)
        await trio.sleep(200)
        written = []
        house.files.fault = lambda operation, path, size: (
            written.append(path) if operation in ("write", "sync", "rename") else None
        )
        await trio.sleep(2000)
        assert written == []
        nursery.cancel_scope.cancel()


async def test_idle_producers_are_forgotten():
    house = House(producer_id_expiration_ms="1000")
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    await log.append_as_leader(idempotent(["a"], 0), 0)
    await managed._upkeep.remove_expired_producers()
    assert 7 in log.producer_state.entries
    house.clock.advance(1000)
    await managed._upkeep.remove_expired_producers()
    assert log.producer_state.entries == {}


async def test_a_chore_that_fails_takes_its_dir_offline():
    house = House()
    managed = await house.start()
    chores = managed.services.chores
    async with trio.open_nursery() as nursery:
        nursery.start_soon(chores.run)
        done = []
        chores.later(0, managed.dirs[0], lambda: done.append("work"), lambda: done.append("done"))
        await wait_all_tasks_blocked()
        assert done == ["work", "done"]

        def failing():
            raise OSError(errno.EIO, "Input/output error")

        chores.later(0, managed.dirs[0], failing)
        await wait_all_tasks_blocked()
        assert not managed.dirs[0].online
        chores.later(0, managed.dirs[0], lambda: done.append("too late"))
        await wait_all_tasks_blocked()
        assert done == ["work", "done"]
        nursery.cancel_scope.cancel()


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
