"""A log dir fails: what clients are told of its partitions, and how the others go on."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest
import trio

from kwire.broker.log_dirs import LogDirsFailed
from kwire.ports.memory_files import MemoryFileSystem
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kwire.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition
from kwire.storage import layout
from tests.broker.scene import Scene, running
from tests.storage.house import broken
from tests.storage.support import read_all

DIRS = {"log.dirs": "/one,/two"}


async def partition(scene: Scene, topic: str) -> MetadataResponsePartition:
    response = await scene.call(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    return response.topics[0].partitions[0]


async def listed(scene: Scene, topic: str) -> tuple[int, int]:
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
    )
    found = (await scene.call(request)).topics[0].partitions[0]
    return found.error_code, found.offset


async def fetched(scene: Scene, topic: str) -> int:
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchTopic(topic=topic, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])],
    )
    return (await scene.call(request, 12)).responses[0].partitions[0].error_code


async def two_topics(scene: Scene) -> None:
    """ "one" in the dir of that name, "two" likewise."""
    for topic in ("one", "two"):
        await scene.create(topic)
        await scene.produce(topic, b"before")
        assert scene.log(topic).log_dir.path == f"/{topic}"


@pytest.mark.parametrize(("failing", "other"), [("two", "one"), ("one", "two")])
async def test_its_partitions_answer_a_storage_error_and_the_others_serve_on(
    failing: str, other: str, autojump_clock, caplog
) -> None:
    async with running(DIRS) as scene:
        await two_topics(scene)
        scene.files.fault = broken(f"/{failing}/{failing}-0")
        storage = ErrorCode.KAFKA_STORAGE_ERROR
        assert (await scene.produce(failing, b"lost")).error_code == storage
        (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert line.startswith(f"log dir /{failing} is offline until the broker restarts (1 partitions in it; 1 of 2 ")
        assert "append of" in line
        assert "Input/output error" in line
        assert "restart the broker" in line
        await trio.sleep(1)
        found = await partition(scene, failing)
        assert (found.error_code, found.leader_id, found.leader_epoch) == (ErrorCode.LEADER_NOT_AVAILABLE, -1, 1)
        assert (found.replica_nodes, found.isr_nodes, found.offline_replicas) == ([1], [], [1])
        assert (await scene.produce(failing, b"lost")).error_code == storage
        assert await fetched(scene, failing) == storage
        assert (await listed(scene, failing))[0] == storage
        served = await partition(scene, other)
        assert (served.error_code, served.leader_id, served.offline_replicas) == (0, 1, [])
        assert (await scene.produce(other, b"after")).error_code == 0
        assert await listed(scene, other) == (0, 2)
        await scene.create("new", 2)
        assert {scene.log("new", index).log_dir.path for index in (0, 1)} == {f"/{other}"}
        response = await scene.call(DescribeLogDirsRequest(topics=None))
        assert {each.log_dir: each.error_code for each in response.results} == {f"/{failing}": storage, f"/{other}": 0}
        files = scene.files
    files.fault = None
    async with running(DIRS, files=files) as scene:
        found = await partition(scene, failing)
        assert (found.error_code, found.leader_id, found.leader_epoch) == (0, 1, 2)
        assert (found.isr_nodes, found.offline_replicas) == ([1], [])
        assert read_all(scene.log(failing)) == [(0, "before")]
        assert (await scene.produce(failing, b"again")).error_code == 0


async def test_the_dir_of_the_metadata(autojump_clock, caplog) -> None:
    """What is in the other dirs is served, and nothing about the cluster can be changed until the restart."""
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
        files.fault = broken("/one")
        assert (await scene.produce("one", b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await trio.sleep(1)
        assert (await scene.produce("two", b"after")).error_code == 0
        assert (await scene.produce("one", b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)], timeout_ms=1000
        )
        assert (await scene.call(request)).topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    files.fault = None
    async with running(DIRS, files=files) as scene:
        assert read_all(scene.log("one")) == [(0, "before")]
        assert read_all(scene.log("two")) == [(0, "before"), (1, "after")]


async def test_a_dir_that_is_not_mounted(autojump_clock, caplog) -> None:
    """An empty log in the place of the one that is missing would pass for all there ever was."""
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
    files.rename("/two", "/elsewhere")
    for count in (2, 3):
        async with running(DIRS, files=files, seed=count) as scene:
            assert (await partition(scene, "two")).error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert (await scene.produce("two", b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert (await scene.produce("one", b"after")).error_code == 0
            await grow(scene, "one", count)
    assert caplog.text.count("is a volume to be mounted at /two?") == 2
    files.remove_tree("/two")
    files.rename("/elsewhere", "/two")
    async with running(DIRS, files=files) as scene:
        assert (await partition(scene, "two")).error_code == 0
        assert read_all(scene.log("two")) == [(0, "before")]


async def test_each_start_names_what_was_lost_with_a_dir(autojump_clock, caplog) -> None:
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
        files.fault = broken("/two/two-0")
        assert (await scene.produce("two", b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await trio.sleep(1)
    files.fault = None
    files.remove_tree("/two")
    for _ in range(2):
        caplog.clear()
        async with running(DIRS, files=files) as scene:
            assert (await partition(scene, "two")).error_code == ErrorCode.LEADER_NOT_AVAILABLE
        (told,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert "nobody leads two-0, whose logs were in a log dir that is gone" in told


async def test_a_dir_that_was_taken_out_of_log_dirs(autojump_clock, caplog) -> None:
    """Empty logs in the place of those in it would pass for all there ever was."""
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
    for count in (2, 3):
        caplog.clear()
        async with running({"log.dirs": "/one"}, files=files) as scene:
            assert read_all(scene.log("one")) == [(0, "before")]
            assert (await partition(scene, "two")).error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert (await scene.produce("two", b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            await grow(scene, "one", count)
        assert "nobody leads two-0, whose logs were in a log dir that is gone: bring it back" in caplog.text
    async with running(DIRS, files=files) as scene:
        assert read_all(scene.log("two")) == [(0, "before")]
        assert (await scene.produce("two", b"after")).error_code == 0


async def test_nothing_is_missed_of_a_dir_that_was_taken_out_when_it_was_empty(autojump_clock, caplog) -> None:
    async with running(DIRS) as scene:
        files = scene.files
        await scene.create("one")
        await scene.produce("one", b"before")
    for config in ({"log.dirs": "/one"}, {"log.dirs": "/one,/three"}):
        async with running(config, files=files) as scene:
            assert read_all(scene.log("one"))[0] == (0, "before")
            assert (await scene.produce("one", b"after")).error_code == 0
    assert "gone" not in caplog.text


async def test_topics_lost_with_a_dir_are_deleted_and_it_is_forgotten(autojump_clock, caplog) -> None:
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
    config = {"log.dirs": "/one"}
    async with running(config, files=files) as scene:
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="two")], timeout_ms=1000))
        await scene.create("two")
        assert (await scene.produce("two", b"anew")).error_code == 0
    caplog.clear()
    async with running(config, files=files) as scene:
        assert read_all(scene.log("two")) == [(0, "anew")]
        assert scene.broker.store.image.brokers[1].log_dirs == (scene.broker.logs.dirs[0].id,)
    assert "gone" not in caplog.text


async def test_a_log_that_went_from_a_dir_that_is_there(autojump_clock, caplog) -> None:
    """It begins anew, as with Apache Kafka; but not without a word."""
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
    files.remove_tree("/two/two-0")
    caplog.clear()
    async with running(DIRS, files=files) as scene:
        assert read_all(scene.log("one")) == [(0, "before")]
        assert read_all(scene.log("two")) == []
    told = [message for message in caplog.messages if "begin anew, empty" in message]
    assert len(told) == 1
    assert "two-0" in told[0]
    assert "one-0" not in told[0]
    caplog.clear()
    async with running(DIRS, files=files) as scene:
        await scene.create("new")
    assert "begin anew" not in caplog.text


SLOWLY = {**DIRS, "replica.alter.log.dirs.io.max.bytes.per.second": "100"}


@pytest.mark.parametrize("config", [{**SLOWLY, "log.dirs": "/one"}, SLOWLY])
async def test_a_half_of_a_log_on_its_way_does_not_stand_for_one_that_is_gone(config, autojump_clock) -> None:
    """Whether the dir that it comes from is not in log.dirs any more, or not mounted."""
    async with running(SLOWLY) as scene:
        files = scene.files
        await two_topics(scene)
        for _ in range(6):
            await scene.produce("two", b"x" * 900_000)
        topics = [AlterReplicaLogDirTopic(name="two", partitions=[0])]
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/one", topics=topics)])
        assert (await scene.call(request)).results[0].partitions[0].error_code == 0
        await trio.sleep(2)
        assert any(name.endswith(layout.FUTURE_DIR) for name in files.list("/one"))
        end = scene.log("two").log_end_offset
    files.rename("/two", "/elsewhere")
    for seed in range(2):
        async with running(config, files=files, seed=seed) as scene:
            assert (await partition(scene, "two")).error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert (await scene.produce("two", b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    with suppress(FileNotFoundError):
        files.remove_tree("/two")
    files.rename("/elsewhere", "/two")
    async with running(SLOWLY, files=files) as scene:
        assert scene.log("two").log_end_offset == end
        assert (await scene.produce("two", b"after")).error_code == 0


async def test_nothing_new_is_made_where_a_volume_may_not_be_mounted(autojump_clock) -> None:
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
    files.rename("/two", "/elsewhere")
    for number in range(2):
        async with running(DIRS, files=files, seed=number) as scene:
            for index in range(2):
                await scene.create(f"new-{number}-{index}")
                assert scene.log(f"new-{number}-{index}").log_dir.path == "/one"
    files.remove_tree("/two")
    files.rename("/elsewhere", "/two")
    async with running(DIRS, files=files) as scene:
        assert read_all(scene.log("two")) == [(0, "before")]
        await scene.create("new")
        assert scene.log("new").log_dir.path == "/two"


async def test_a_dir_that_failed_when_a_topic_was_created_in_it(autojump_clock) -> None:
    """There never was a log: once all dirs are back, nothing can be missed."""
    async with running(DIRS) as scene:
        files = scene.files
        await scene.create("one")
        files.fault = broken("/two/new-0")
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)], timeout_ms=1000
        )
        await scene.call(request)
        await trio.sleep(2)
        assert (await partition(scene, "new")).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    files.fault = None
    async with running(DIRS, files=files) as scene:
        assert (await partition(scene, "new")).error_code == 0
        assert (await scene.produce("new", b"x")).error_code == 0


async def test_a_new_cluster_does_not_begin_beside_what_is_left_of_another(autojump_clock) -> None:
    """The first dir, which has the metadata, is not mounted; there are no logs in the other, or it can't be read."""
    async with running({"log.dirs": "/one"}) as scene:
        files = scene.files
        await scene.create("one")
        await scene.produce("one", b"before")
    async with running(DIRS, files=files):
        pass
    files.rename("/one", "/elsewhere")
    for fault, said in ((None, "/two belong to a cluster"), (broken("/two"), "/two can't be read")):
        files.fault = fault
        with pytest.raises(BaseExceptionGroup) as refused:
            await until_started(files)
        assert f"no metadata in /one, which comes first in log.dirs, and {said}" in str(refused.value.exceptions[0])
    files.fault = None
    files.remove_tree("/one")
    files.rename("/elsewhere", "/one")
    async with running(DIRS, files=files) as scene:
        assert read_all(scene.log("one")) == [(0, "before")]


async def test_what_is_no_folder_is_left_alone(autojump_clock, caplog) -> None:
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
    files.write("/two/core-1234", b"")
    async with running(DIRS, files=files) as scene:
        assert read_all(scene.log("two")) == [(0, "before")]
    assert "leaving /two/core-1234 alone: it is no folder" in caplog.text


async def grow(scene: Scene, topic: str, count: int) -> None:
    """Adds partitions until there are so many."""
    added = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    response = await scene.call(CreatePartitionsRequest(topics=[added], timeout_ms=1000))
    assert response.results[0].error_code == 0


async def test_a_dir_that_is_added(autojump_clock) -> None:
    async with running({"log.dirs": "/one"}) as scene:
        files = scene.files
        await scene.create("one")
        await scene.produce("one", b"before")
    async with running(DIRS, files=files) as scene:
        assert read_all(scene.log("one")) == [(0, "before")]
        await grow(scene, "one", 2)
        assert scene.log("one", 1).log_dir.path == "/two"


async def test_the_dir_of_the_metadata_is_not_mounted(autojump_clock) -> None:
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
    files.rename("/one", "/elsewhere")
    for _ in range(2):
        with pytest.raises(BaseExceptionGroup) as refused:
            await until_started(files)
        assert "no metadata in /one" in str(refused.value.exceptions[0])
    files.remove_tree("/one")
    files.rename("/elsewhere", "/one")
    async with running(DIRS, files=files) as scene:
        for topic in ("one", "two"):
            assert read_all(scene.log(topic)) == [(0, "before")]


async def until_started(files: MemoryFileSystem) -> None:
    async with running(DIRS, files=files):
        pass


async def test_at_a_start_with_one_dir_broken(autojump_clock, caplog) -> None:
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
    files.fault = broken("/two")
    async with running(DIRS, files=files) as scene:
        assert (await partition(scene, "two")).error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert (await scene.produce("two", b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await scene.produce("one", b"after")).error_code == 0
    files.fault = None
    async with running(DIRS, files=files) as scene:
        assert (await partition(scene, "two")).error_code == 0
        assert read_all(scene.log("two")) == [(0, "before")]


async def test_with_the_last_dir_the_broker_ends(autojump_clock) -> None:
    async def until_all_failed() -> None:
        async with running(DIRS) as scene:
            await two_topics(scene)
            scene.files.fault = broken("/two/two-0")
            await scene.produce("two", b"lost")
            scene.files.fault = lambda operation, path, size: _full(path) if operation == "write" else None
            await scene.produce("one", b"lost")
            await trio.sleep(1)

    with pytest.raises(BaseExceptionGroup) as failed:
        await until_all_failed()
    error: BaseException = failed.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, LogDirsFailed)
    assert str(error).startswith("all log dirs have failed, the broker ends: append of one-0 failed in log dir /one: ")
    assert "make room on its volume" in str(error)


def _full(path: str) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", path)


async def test_a_topic_deleted_and_created_again_while_its_dir_is_offline(autojump_clock, caplog) -> None:
    async with running(DIRS) as scene:
        files = scene.files
        await two_topics(scene)
        files.fault = broken("/two/")
        await scene.produce("two", b"lost")
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="two")], timeout_ms=1000))
        await scene.create("two")
        await scene.produce("two", b"of the new one")
        assert scene.log("two").log_dir.path == "/one"
    files.fault = None
    async with running(DIRS, files=files) as scene:
        assert scene.log("two").log_dir.path == "/one"
        assert read_all(scene.log("two")) == [(0, "of the new one")]
        assert any(name.endswith(layout.STRAY_DIR) for name in files.list("/two"))


async def test_what_an_earlier_topic_of_that_name_left_does_not_stand_for_a_log_that_is_not_here(
    autojump_clock,
) -> None:
    """A dir is missing while the topic is made anew, and is back when the one with the new log is missing."""
    async with running({"log.dirs": "/zero,/two"}) as scene:
        files = scene.files
        await scene.create("zero")
        await scene.create("two")
        assert scene.log("two").log_dir.path == "/two"
    files.rename("/two", "/elsewhere")
    async with running({"log.dirs": "/zero,/one"}, files=files, seed=2) as scene:
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="two")], timeout_ms=1000))
    async with running({"log.dirs": "/zero,/one"}, files=files, seed=3) as scene:
        await scene.create("two")
        await scene.produce("two", b"of the new one")
        assert scene.log("two").log_dir.path == "/one"
    files.rename("/elsewhere", "/two")
    async with running({"log.dirs": "/zero,/two"}, files=files, seed=4) as scene:
        assert (await partition(scene, "two")).error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert (await scene.produce("two", b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    async with running({"log.dirs": "/zero,/one,/two"}, files=files, seed=5) as scene:
        assert read_all(scene.log("two")) == [(0, "of the new one")]


async def test_a_coordinator_whose_log_is_lost(autojump_clock) -> None:
    async with running({**DIRS, "offsets.topic.num.partitions": "1"}) as scene:
        await scene.create("one")
        found = await scene.call(FindCoordinatorRequest(key="group"), 3)
        assert found.error_code == 0
        assert scene.log("__consumer_offsets").log_dir.path == "/two"
        scene.broker.logs.dirs[1].fail("a test", OSError(errno.EROFS, "Read-only file system"))
        await trio.sleep(1)
        found = await scene.call(FindCoordinatorRequest(key="group"), 3)
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_a_dir_that_fails_when_the_last_of_several_logs_is_created_in_it(autojump_clock) -> None:
    """The logs that were there already are lost as well."""
    async with running(DIRS) as scene:
        files = scene.files
        files.fault = broken("/two/new-7")
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name="new", num_partitions=8, replication_factor=1)], timeout_ms=1000
        )
        await scene.call(request)
        await trio.sleep(2)
        response = await scene.call(MetadataRequest(topics=[MetadataRequestTopic(name="new")]))
        told = {each.partition_index: each.error_code for each in response.topics[0].partitions}
        assert told == {index: ErrorCode.LEADER_NOT_AVAILABLE if index % 2 else 0 for index in range(8)}
        for index, code in told.items():
            answer = await scene.produce("new", b"x", partition=index)
            assert answer.error_code == (ErrorCode.KAFKA_STORAGE_ERROR if code else 0)
    files.fault = None
    async with running(DIRS, files=files) as scene:
        for index in range(8):
            assert (await scene.produce("new", b"x", partition=index)).error_code == 0
