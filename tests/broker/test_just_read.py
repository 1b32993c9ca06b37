"""Which fetches are sent without asking once more whether what they found is in memory."""

from __future__ import annotations

import pytest
import trio

from kwire.broker import sendable as module
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.broker.scene import running
from tests.broker.test_failing_log_dirs import DIRS, two_topics


def request(*topics: str, offset: int = 0, wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    asked = [FetchTopic(topic=topic, partitions=[partition]) for topic in topics]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=asked)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What `sendable` was told."""
    calls: list[bool] = []
    real = module.sendable

    async def note(executor, part, *, just_read: bool):
        calls.append(just_read)
        return await real(executor, part, just_read=just_read)

    monkeypatch.setattr("kwire.broker.apis.fetch.sendable", note)
    return calls


async def test_one_that_is_answered_at_once(autojump_clock, told: list[bool]) -> None:
    async with running(DIRS) as scene:
        await two_topics(scene)
        await scene.call(request("one", "two"), 12)
        assert told == [True, True]


async def test_one_with_a_partition_that_is_not_as_it_should_be(autojump_clock, told: list[bool]) -> None:
    """As where some of it is in remote storage, for which it waits."""
    async with running(DIRS) as scene:
        await two_topics(scene)
        await scene.call(request("one", "unknown"), 12)
        assert told == [False]


async def test_one_that_waited(autojump_clock, told: list[bool]) -> None:
    async with running(DIRS) as scene:
        await two_topics(scene)
        reader = await scene.another_connection()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reader.call, request("one", offset=1, wait_ms=10_000), 12)
            await trio.sleep(1)
            assert told == []
            await scene.produce("one", b"more")
        assert told == [False]
        reader.close()
