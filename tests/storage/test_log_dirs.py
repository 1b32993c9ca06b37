"""The log dirs of a broker: whose they are, which can be used, in what state a start or a stop leaves them."""

import errno

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kwire.config.topic import LogConfig
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage import layout
from kwire.storage.log_dir import LogDirError
from kwire.storage.survey import survey

from .house import NOT_CLEAN, House, broken
from .support import CLUSTER, ROOT, TOPIC_ID, append, config, manager, read_all


async def test_a_new_dir():
    house = House()
    managed = manager(house.files, house.clock)
    assert await managed.lock() is None
    await managed.load(CLUSTER, 3, lambda topic: LogConfig())
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
    log = await managed.get_or_create("t", 0, TOPIC_ID, config())
    await append(log, "kept")
    size = log.size
    await house.stop(managed)
    house.dirs = ["/a", "/b"]
    told = rf"t-0 is in two log dirs, /a \(0 bytes\) and /b \({size} bytes\): take the folder t-0 out of one"
    with pytest.raises(LogDirError, match=told):
        await house.start()


async def test_what_a_kill_amid_a_creation_left_is_no_second_log():
    """A folder that does not say of which topic it is, and has no record."""
    house = House(["/a", "/b"])
    managed = await house.start()
    log = await managed.get_or_create("t", 0, TOPIC_ID, config(), directory=managed.dirs[1].id)
    await append(log, "kept")
    await house.stop(managed)
    house.files.make_dirs("/a/t-0")
    house.files.write("/a/t-0/partition.metadata", b"")
    house.files.write("/a/t-0/00000000000000000000.log", b"")
    managed = manager(house.files, house.clock, house.dirs)
    await managed.lock()
    await managed.load(CLUSTER, 1, lambda topic: config(), lambda topic: TOPIC_ID)
    assert read_all(managed.get("t", 0)) == [(0, "kept")]
    assert not house.files.exists("/a/t-0")


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


async def test_a_dir_that_fails_goes_offline_and_the_others_go_on(caplog):
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
    assert NOT_CLEAN in caplog.text
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


async def two_dirs(clean):
    """Dirs with 40 logs each, all of which begin at offset 1; stopped or killed."""
    house = House(["/a", "/b"])
    managed = await house.start()
    for partition in range(80):
        log = await managed.get_or_create("t", partition, TOPIC_ID, config())
        await append(log, "a", "b")
        log.set_high_watermark(2)
        log.advance_log_start(1)
    for log_dir in managed.dirs:
        await managed.upkeep.checkpoint_dir(log_dir)
    if clean:
        await house.stop(managed, 41)
    house.kill()
    return house


@pytest.mark.parametrize("clean", [True, False])
async def test_a_refused_start_leaves_the_dirs_as_they_were(clean):
    house = await two_dirs(clean)
    before = house.contents()
    managed = manager(house.files, house.clock, house.dirs)
    await managed.lock()
    with pytest.raises(LogDirError, match=r"node\.id=1, but"):
        await house.load(managed, node=2)
    await house.stop(managed)
    assert house.contents() == before


@pytest.mark.parametrize("clean", [True, False])
async def test_a_start_that_is_given_up_does_not_pass_for_a_clean_stop(clean, caplog):
    house = await two_dirs(clean)
    before = house.contents()
    managed = manager(house.files, house.clock, house.dirs)
    await managed.lock()
    run = managed.services.executor.run
    with trio.CancelScope() as scope:

        async def cancel_amid(function, *arguments):
            if managed.dirs[0].loaded and function is not survey:
                scope.cancel()
            return await run(function, *arguments)

        managed.services.executor.run = cancel_amid
        await house.load(managed)
    assert scope.cancelled_caught
    managed.services.executor.run = run
    assert len(managed.logs) == 40
    await house.stop(managed)
    checkpoints = {path: data for path, data in before.items() if path.startswith("/b/") and path.count("/") == 2}
    assert {path: house.contents()[path] for path in checkpoints} == checkpoints
    assert house.files.exists(f"/b/{layout.CLEAN_SHUTDOWN}") == clean
    caplog.clear()
    managed = await house.start()
    assert (f"/b {NOT_CLEAN}" in caplog.text) != clean
    assert {log.log_start_offset for log in managed.logs.values()} == {1}
    assert len(managed.logs) == 80


async def test_a_dir_that_lost_its_identity_is_recovered(caplog):
    house = House()
    managed = await house.start()
    await append(await managed.get_or_create("t", 0, TOPIC_ID, config()), "a", "b")
    house.kill()
    segment = f"{ROOT}/t-0/{layout.segment_name(0, layout.LOG)}"
    end = house.files.file_size(segment)
    house.files.open(segment).pwrite([b"torn"], end)
    house.files.remove(f"{ROOT}/{layout.META_PROPERTIES}")
    managed = await house.start()
    assert NOT_CLEAN in caplog.text
    assert read_all(managed.get("t", 0)) == [(0, "a"), (1, "b")]
    assert house.files.file_size(segment) == end


async def test_a_failure_among_many_logs_that_are_closed_is_no_clean_stop(caplog):
    house = House()
    managed = await house.start()
    for partition in range(100):
        await append(await managed.get_or_create("t", partition, TOPIC_ID, config()), "a")
    house.files.fault = broken(f"{ROOT}/t-7", "write")
    await house.stop(managed)
    house.files.fault = None
    assert not house.files.exists(f"{ROOT}/{layout.CLEAN_SHUTDOWN}")
    assert [record.levelname for record in caplog.records].count("ERROR") == 1
    managed = await house.start()
    assert all(read_all(log) == [(0, "a")] for log in managed.logs.values())
