"""DescribeLogDirs: which logs are where, their sizes, and dirs that failed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tests.broker.scene import Scene, running


async def ask(
    scene: Scene, asked: Sequence[tuple[str, Sequence[int]]] | None, version: int = 5
) -> DescribeLogDirsResponse:
    topics = None
    if asked is not None:
        topics = [DescribableLogDirTopic(topic=topic, partitions=list(partitions)) for topic, partitions in asked]
    response = await scene.call(DescribeLogDirsRequest(topics=topics), version)
    assert response.error_code == 0
    return response


def told(response: DescribeLogDirsResponse) -> dict[tuple[str, int], int]:
    """(topic, partition) to size, of all dirs."""
    return {
        (topic.name, each.partition_index): each.partition_size
        for log_dir in response.results
        for topic in log_dir.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, {("t", 0), ("t", 1), ("u", 0)}),
        ([], set()),
        ([("t", [1, 7, -1, 1])], {("t", 1)}),
        ([("t", []), ("u", [0]), ("absent", [0])], {("u", 0)}),
    ],
)
async def test_which_partitions_are_told(
    version: int, asked: Sequence[tuple[str, Sequence[int]]] | None, expected: set[tuple[str, int]], autojump_clock
) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        await scene.create("u")
        response = await ask(scene, asked, version)
        (log_dir,) = response.results
        assert log_dir.log_dir == scene.files.absolute("data")
        assert told(response).keys() == expected
        total, usable = scene.files.space("data")
        assert (log_dir.total_bytes, log_dir.usable_bytes) == ((total, usable) if version >= 4 else (-1, -1))
        assert not log_dir.is_cordoned


async def test_sizes(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        await scene.produce("t", b"v" * 1000)
        sizes = told(await ask(scene, None))
        assert sizes["t", 0] == scene.log("t").size > 1000
        assert sizes["t", 1] == 0


async def test_a_dir_that_failed_is_told_with_its_error(autojump_clock) -> None:
    async with running({"log.dirs": "one,two"}) as scene:
        for name in "abcd":
            await scene.create(name)
        assert len(told(await ask(scene, None))) == 4
        one, two = scene.broker.logs.dirs
        two.fail("a test", OSError("broken"))
        response = await ask(scene, None)
        assert [(each.log_dir, each.error_code) for each in response.results] == [
            (scene.files.absolute(one.path), 0),
            (scene.files.absolute(two.path), ErrorCode.KAFKA_STORAGE_ERROR),
        ]
        assert response.results[0].topics
        assert (response.results[1].topics, response.results[1].total_bytes) == ([], -1)
