"""What changes while something else of a tiered topic is under way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from kwire.cluster.partition import Partition
from kwire.cluster.replica import ListedOffset
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.remote.errors import RemoteStorageUnavailable
from tests.broker.tiered.support import (
    SWITCHED_OFF,
    TIERED,
    TieredPlace,
    configure,
    fetch,
    fill,
    list_offset,
    read_all,
    until,
)

STAYS = {**TIERED, "local_retention_bytes": "-2"}
"""What is copied stays here as well."""


@pytest.mark.parametrize("fails", [False, True])
async def test_remote_storage_is_switched_on_again_before_all_copies_are_deleted(
    fails: bool, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies that go do not count, nor those that are left if it fails: what is here stays until it is copied anew."""
    place = TieredPlace()
    async with place.broker() as scene:
        await scene.create("t", **STAYS)
        values = await fill(scene, "t", 30)
        log = scene.log("t")
        await until(lambda: log.tiered_end_offset == log.segments.active.base_offset > 0)
        delete, on, deletions = place.objects.delete, trio.Event(), 0

        async def delete_slowly(*arguments: Any) -> None:
            nonlocal deletions
            deletions += 1
            if deletions > 2:
                await on.wait()
                if fails and deletions == 3:
                    raise RemoteStorageUnavailable("delete: not now")
            await delete(*arguments)

        monkeypatch.setattr(place.objects, "delete", delete_slowly)
        await configure(scene, "t", **SWITCHED_OFF)
        await until(lambda: deletions > 2)
        await configure(scene, "t", remote_storage_enable="true", local_retention_bytes="2000")
        await trio.sleep(5)
        on.set()
        await until(lambda: log.local_start_offset >= 60)
        await trio.sleep(60)
        assert await read_all(scene, "t") == list(enumerate(values))


async def test_what_is_not_here_is_out_of_range_as_soon_as_remote_storage_is_switched_off(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A consumer that was there would jump over it, else, and not know."""
    async with TieredPlace().broker() as scene:
        await scene.create("t", **TIERED)
        await fill(scene, "t", 30)
        log = scene.log("t")
        await until(lambda: log.local_start_offset >= 60)
        await configure(scene, "t", **SWITCHED_OFF)
        assert (await fetch(scene, "t", 3)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert log.log_start_offset == log.segments.first.base_offset


async def test_what_goes_from_here_during_a_look_up_by_time_is_found(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with TieredPlace().broker() as scene:
        await scene.create("t", **STAYS)
        times = []
        for _ in range(30):
            times.append(scene.broker.clock.wall_ms())
            await fill(scene, "t", 1)
            await trio.sleep(1)
        log = scene.log("t")
        await until(lambda: log.tiered_end_offset == log.segments.active.base_offset > 0)
        assert log.local_start_offset == 0
        look_up = Partition.list_offset

        async def retention_comes_first(self: Partition, *arguments: Any, **options: Any) -> ListedOffset:
            log.config = replace(log.config, local_retention_bytes=2000)
            await log.delete_old_segments(scene.broker.clock.wall_ms())
            return await look_up(self, *arguments, **options)

        monkeypatch.setattr(Partition, "list_offset", retention_comes_first)
        assert (await list_offset(scene, "t", times[4])).offset == 12
        assert log.local_start_offset > 12


async def test_records_are_deleted_while_their_copy_waits_for_its_turn(autojump_clock: trio.testing.MockClock) -> None:
    """Nothing is put into the store then that nobody would know of."""
    place = TieredPlace()
    slow = {"remote_log_manager_copy_max_bytes_per_second": "500", "log_retention_check_interval_ms": "3600000"}
    async with place.broker(**slow) as scene:
        await scene.create("t", **STAYS)
        values = await fill(scene, "t", 30)
        tiering = scene.broker.tiering
        assert tiering is not None
        log = scene.log("t")
        await until(lambda: log.tiered_end_offset > 0)
        partition = DeleteRecordsPartition(partition_index=0, offset=len(values))
        topic = DeleteRecordsTopic(name="t", partitions=[partition])
        await scene.call(DeleteRecordsRequest(topics=[topic], timeout_ms=1000))
        await trio.sleep(120)
        told = {key for of, segments in tiering.known() for segment in segments for key in segment.keys(of)}
        assert set(await place.keys()) <= told
