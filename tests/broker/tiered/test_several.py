"""Fetches of several partitions of which some are in remote storage, and who fetches."""

from __future__ import annotations

from typing import Any

import pytest
import trio.testing

from kwire.cluster.replica import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker.scene import Scene
from tests.broker.tiered.support import TIERED, TieredPlace, fill, list_offset, records, until


async def fetch_all(scene: Scene, *asked: tuple[str, int], max_bytes: int, **options: Any) -> dict[str, PartitionData]:
    """From offsets of topics with one partition each, in this order."""
    response = await scene.call(
        FetchRequest(
            max_wait_ms=0,
            max_bytes=max_bytes,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, **options)
                    ],
                )
                for topic, offset in asked
            ],
        ),
        12,
    )
    return {told.topic: told.partitions[0] for told in response.responses}


async def tiered_and_plain(scene: Scene) -> None:
    await scene.create("t", **TIERED)
    await scene.create("plain")
    await fill(scene, "t", 30)
    await fill(scene, "plain", 3)
    await until(lambda: scene.log("t").local_start_offset >= 60)


async def test_the_first_partition_comes_first_wherever_it_is(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await tiered_and_plain(scene)
        answers = await fetch_all(scene, ("t", 0), ("plain", 0), max_bytes=1)
        assert records(answers["t"].records)
        assert not answers["plain"].records
        answers = await fetch_all(scene, ("plain", 0), ("t", 0), max_bytes=1)
        assert not answers["t"].records
        assert records(answers["plain"].records)


async def test_what_is_remote_is_reckoned_with_all_that_it_may_bring(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await tiered_and_plain(scene)
        answers = await fetch_all(scene, ("t", 0), ("plain", 0), max_bytes=1 << 20)
        assert records(answers["t"].records)
        assert not answers["plain"].records
        answers = await fetch_all(scene, ("t", 0), ("plain", 0), max_bytes=1 << 22)
        assert records(answers["t"].records)
        assert records(answers["plain"].records)


async def test_who_makes_a_log_of_it_begins_with_what_is_here(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await tiered_and_plain(scene)
        topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])]
        response = await scene.call(FetchRequest(replica_id=-3, max_wait_ms=0, topics=topics), 12)
        told = response.responses[0].partitions[0]
        assert told.error_code == ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
        assert (told.high_watermark, told.log_start_offset, told.records) == (90, 0, b"")


async def test_an_unknown_history_is_looked_for_in_remote_storage(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await tiered_and_plain(scene)
        answers = await fetch_all(scene, ("t", 3), max_bytes=1 << 20, last_fetched_epoch=7)
        assert answers["t"].error_code == ErrorCode.NONE
        assert records(answers["t"].records)[0][0] == 3
        answers = await fetch_all(scene, ("t", 88), max_bytes=1 << 20, last_fetched_epoch=7)
        assert answers["t"].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("replica", [-1, -2])
async def test_times_are_looked_up_for_debuggers_too(replica: int, autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await tiered_and_plain(scene)
        topics = [ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=0)])]
        response = await scene.call(ListOffsetsRequest(replica_id=replica, topics=topics))
        assert response.topics[0].partitions[0].offset == 0


async def test_while_it_is_not_known_what_is_remote(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await tiered_and_plain(scene)
        log = scene.log("t")
        for index in range(3):
            scene.broker.tiering._metadata.resign(index)  # type: ignore[union-attr]
        known = {
            LATEST: 90,
            EARLIEST: 0,
            EARLIEST_LOCAL: log.local_start_offset,
            LATEST_TIERED: log.tiered_end_offset - 1,
        }
        for timestamp, expected in known.items():
            assert (await list_offset(scene, "t", timestamp)).offset == expected
        for timestamp in (0, MAX_TIMESTAMP):
            assert (await list_offset(scene, "t", timestamp)).error_code == ErrorCode.REPLICA_NOT_AVAILABLE
        answers = await fetch_all(scene, ("t", 3), ("plain", 0), max_bytes=1 << 22)
        assert answers["t"].error_code == ErrorCode.REPLICA_NOT_AVAILABLE
        assert records(answers["plain"].records)


async def test_nothing_is_pending_where_there_is_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await scene.create("t", **TIERED)
        assert (await list_offset(scene, "t", EARLIEST_PENDING_UPLOAD)).offset == -1
        await fill(scene, "t", 1)
        assert (await list_offset(scene, "t", EARLIEST_PENDING_UPLOAD)).offset == 0
