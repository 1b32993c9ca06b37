"""AlterReplicaLogDirs: logs move to other log dirs while they are produced to and read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.security.authorizer import Operation
from tests.broker.scene import Scene, running
from tests.storage.support import read_all

DIRS = {"log.dirs": "/one,/two,/three"}
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

Move = tuple[str, str, Sequence[int]]
"""Path, topic, partitions."""


async def alter(scene: Scene, *moves: Move, version: int = 2) -> dict[tuple[str, int], int]:
    """The error for each partition."""
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))])
            for path, topic, partitions in moves
        ]
    )
    response = await scene.call(request, version)
    return {
        (result.topic_name, each.partition_index): each.error_code
        for result in response.results
        for each in result.partitions
    }


async def told(scene: Scene, topic: str) -> dict[str, tuple[int, int, bool]]:
    """By dir: size, lag, and whether it is the future log."""
    response = await scene.call(DescribeLogDirsRequest(topics=None))
    return {
        log_dir.log_dir: (each.partition_size, each.offset_lag, each.is_future_key)
        for log_dir in response.results
        for found in log_dir.topics
        for each in found.partitions
        if found.name == topic
    }


async def limit(scene: Scene, rate: int | None) -> None:
    """Sets how many bytes a second the moves may copy."""
    config = AlterableConfig(
        name=RATE, config_operation=1 if rate is None else 0, value=None if rate is None else str(rate)
    )
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
    response = await scene.call(IncrementalAlterConfigsRequest(resources=[resource]))
    assert response.responses[0].error_code == 0, response


async def fill(scene: Scene, topic: str) -> None:
    for _ in range(30):
        assert (await scene.produce(topic, b"x" * 100_000)).error_code == 0


async def until_in(scene: Scene, topic: str, path: str) -> None:
    for _ in range(6000):
        if scene.log(topic).log_dir.path == path:
            return
        await trio.sleep(0.1)
    raise AssertionError(f"{topic} did not come to {path}")


@pytest.mark.parametrize("version", [1, 2])
async def test_a_move(version: int, autojump_clock) -> None:
    async with running(DIRS) as scene:
        await scene.create("t")
        assert list(await told(scene, "t")) == ["/one"]
        for number in range(20):
            await scene.produce("t", b"%d" % number)
        assert await alter(scene, ("/two", "t", [0]), version=version) == {("t", 0): 0}
        await until_in(scene, "t", "/two")
        assert await told(scene, "t") == {"/two": (scene.log("t").size, 0, False)}
        assert (await scene.produce("t", b"20")).base_offset == 20
        assert read_all(scene.log("t")) == [(number, str(number)) for number in range(21)]


async def test_the_rate(autojump_clock) -> None:
    async with running(DIRS) as scene:
        await scene.create("t")
        await fill(scene, "t")
        size = scene.log("t").size
        await limit(scene, 100_000)
        began = trio.current_time()
        assert await alter(scene, ("/two", "t", [0])) == {("t", 0): 0}
        await trio.sleep(2)
        found = await told(scene, "t")
        assert found["/one"] == (size, 0, False)
        copied, lag, future = found["/two"]
        assert (0 < copied < size, 0 < lag < 30, future) == (True, True, True)
        await until_in(scene, "t", "/two")
        assert trio.current_time() - began >= size / 100_000 - 2


async def test_a_rate_of_nothing_and_then_without_limit(autojump_clock) -> None:
    async with running(DIRS) as scene:
        await scene.create("t")
        await fill(scene, "t")
        await limit(scene, 0)
        await alter(scene, ("/two", "t", [0]))
        await trio.sleep(300)
        assert set(await told(scene, "t")) == {"/one", "/two"}
        await limit(scene, None)
        await until_in(scene, "t", "/two")


@pytest.mark.parametrize(
    ("path", "topic", "partition", "error"),
    [
        ("/nowhere", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("two", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/two/", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("", "t", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        ("/two", "absent", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/two", "bad name!", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/two", "", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/two", "t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/two", "t", -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("/two", "x" * 220, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("/nowhere", "x" * 220, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("/one", "t", 0, ErrorCode.NONE),
        ("/two", "elsewhere", 0, ErrorCode.REPLICA_NOT_AVAILABLE),
    ],
)
async def test_errors(path: str, topic: str, partition: int, error: ErrorCode, autojump_clock) -> None:
    async with running(DIRS) as scene:
        await scene.create("t")
        await scene.create("elsewhere")
        await scene.place("elsewhere", 2)
        assert await alter(scene, (path, topic, [partition])) == {(topic, partition): error}
        assert scene.broker.logs.moves.futures == {}


async def test_the_last_of_several_dirs_counts(autojump_clock) -> None:
    async with running(DIRS) as scene:
        await scene.create("t")
        await limit(scene, 0)
        await fill(scene, "t")
        assert await alter(scene, ("/two", "t", [0, 0]), ("/three", "t", [0])) == {("t", 0): 0}
        assert set(await told(scene, "t")) == {"/one", "/three"}
        assert await alter(scene, ("/three", "t", [0]), ("/one", "t", [0])) == {("t", 0): 0}
        assert set(await told(scene, "t")) == {"/one"}
        assert await alter(scene) == {}


async def test_a_partition_to_come_is_made_in_the_dir_that_was_named(autojump_clock) -> None:
    async with running(DIRS) as scene:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await alter(scene, ("/three", "t", [0, 1])) == {("t", 0): unknown, ("t", 1): unknown}
        await scene.create("t", 3)
        assert [scene.log("t", number).log_dir.path for number in range(3)] == ["/three", "/three", "/one"]


async def test_dirs_that_are_offline(autojump_clock) -> None:
    async with running(DIRS) as scene:
        for topic in ("one", "two", "three"):
            await scene.create(topic)
        assert scene.log("two").log_dir.path == "/two"
        scene.broker.logs.dirs[1].fail("a test", OSError("broken"))
        storage = ErrorCode.KAFKA_STORAGE_ERROR
        assert await alter(scene, ("/two", "one", [0])) == {("one", 0): storage}
        assert await alter(scene, ("/three", "two", [0])) == {("two", 0): storage}
        # There might be a future log of it in the dir that is offline.
        assert await alter(scene, ("/three", "one", [0])) == {("one", 0): storage}
        assert await alter(scene, ("/one", "one", [0])) == {("one", 0): 0}


async def test_a_topic_that_is_deleted_while_it_moves(autojump_clock) -> None:
    async with running(DIRS) as scene:
        await scene.create("t")
        await fill(scene, "t")
        await limit(scene, 0)
        await alter(scene, ("/two", "t", [0]))
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))
        assert await told(scene, "t") == {}
        await scene.create("t")
        assert scene.log("t").size == 0


async def test_who_may_not(autojump_clock) -> None:
    async with running(DIRS) as scene:
        await scene.create("t", 2)
        await scene.allow(Operation.DESCRIBE)
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await alter(scene, ("/two", "t", [0]), ("/three", "t", [1])) == {("t", 0): refused, ("t", 1): refused}


async def test_it_goes_on_after_a_restart(autojump_clock) -> None:
    async with running(DIRS) as scene:
        files = scene.files
        await scene.create("t")
        await fill(scene, "t")
        await limit(scene, 0)
        await alter(scene, ("/two", "t", [0]))
        await trio.sleep(1)
        await limit(scene, 100_000)
    async with running(DIRS, files=files) as scene:
        assert set(await told(scene, "t")) == {"/one", "/two"}
        await until_in(scene, "t", "/two")
        assert len(read_all(scene.log("t"))) == 30
