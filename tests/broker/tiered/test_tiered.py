"""A topic whose older segments are in remote storage, as clients see it."""

from __future__ import annotations

import trio
import trio.testing

from kwire.cluster.replica import EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST_TIERED
from kwire.metadata.names import REMOTE_LOG_METADATA
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.apis.configs import BROKER
from tests.broker.scene import Scene
from tests.broker.tiered.support import TIERED, TieredPlace, fetch, fill, list_offset, read_all, until


async def test_what_is_gone_here_is_read_from_remote_storage(autojump_clock: trio.testing.MockClock) -> None:
    place = TieredPlace()
    async with place.broker() as scene:
        await scene.create("t", **TIERED)
        values = await fill(scene, "t", 30)
        log = scene.log("t")
        await until(lambda: log.local_start_offset >= 60)
        assert log.log_start_offset == 0
        assert log.size < 5000
        expected = list(enumerate(values))
        assert await read_all(scene, "t") == expected
        assert await read_all(scene, "t", 7) == expected[7:]
        assert await read_all(scene, "t", max_bytes=1) == expected


async def test_segments_are_copied_once_with_all_that_belongs_to_them(
    autojump_clock: trio.testing.MockClock,
) -> None:
    place = TieredPlace()
    async with place.broker() as scene:
        await scene.create("t", **TIERED)
        await fill(scene, "t", 30)
        log = scene.log("t")
        await until(lambda: log.tiered_end_offset == log.segments.active.base_offset > 0)
        keys = await place.keys()
        bases = sorted({key.split("/")[2].split("-")[0] for key in keys})
        assert len(place.logs(keys)) == len(bases)
        for base in bases:
            names = sorted(key.split("/")[3] for key in keys if f"/{base}-" in key)
            snapshot = f"{int(base) + 15:020d}.snapshot"
            assert names == sorted(
                [f"{base}.index", f"{base}.log", f"{base}.timeindex", snapshot, "leader-epoch-checkpoint"]
            )
        await trio.sleep(60)
        assert await place.keys() == keys


async def test_list_offsets_knows_both_places(autojump_clock: trio.testing.MockClock) -> None:
    place = TieredPlace()
    async with place.broker() as scene:
        await scene.create("t", **TIERED)
        assert (await list_offset(scene, "t", LATEST_TIERED)).offset == -1
        assert (await list_offset(scene, "t", EARLIEST_PENDING_UPLOAD)).offset == -1
        times = []
        for _ in range(30):
            times.append(scene.broker.clock.wall_ms())
            await fill(scene, "t", 1)
            await trio.sleep(1)
        log = scene.log("t")
        await until(lambda: log.local_start_offset >= 60)
        assert (await list_offset(scene, "t", EARLIEST)).offset == 0
        assert (await list_offset(scene, "t", EARLIEST_LOCAL)).offset == log.local_start_offset
        assert (await list_offset(scene, "t", LATEST_TIERED)).offset == log.tiered_end_offset - 1
        assert (await list_offset(scene, "t", EARLIEST_PENDING_UPLOAD)).offset == log.tiered_end_offset
        for number, time in enumerate(times):
            found = await list_offset(scene, "t", time)
            assert (found.offset, found.timestamp) == (3 * number, time)
        assert (await list_offset(scene, "t", times[-1] + 1)).offset == -1


async def test_a_restart_finds_what_was_copied(autojump_clock: trio.testing.MockClock) -> None:
    place = TieredPlace()
    async with place.broker() as scene:
        await scene.create("t", **TIERED)
        values = await fill(scene, "t", 30)
        await until(lambda: scene.log("t").local_start_offset >= 60)
        keys = await place.keys()
    async with place.broker() as scene:
        await until(lambda: scene.log("t").tiered_end_offset > 0)
        assert await read_all(scene, "t") == list(enumerate(values))
        await trio.sleep(30)
        assert [key for key in keys if key in await place.keys()] == keys
        more = await fill(scene, "t", 10)
        assert [value for _, value in await read_all(scene, "t", len(values))] == more


async def test_retention_of_the_whole_log_deletes_remote_segments(autojump_clock: trio.testing.MockClock) -> None:
    place = TieredPlace()
    async with place.broker() as scene:
        await scene.create("t", **TIERED, retention_bytes="6000")
        await fill(scene, "t", 40)
        log = scene.log("t")
        await until(lambda: log.log_start_offset > 0 and log.local_start_offset > log.log_start_offset)
        await trio.sleep(10)
        start = log.log_start_offset
        assert (await fetch(scene, "t", start - 1)).error_code == 1  # OFFSET_OUT_OF_RANGE
        assert (await read_all(scene, "t", start))[0][0] == start
        oldest = min(int(key.split("/")[2].split("-")[0]) for key in await place.keys())
        assert oldest == start


async def test_a_deleted_topic_leaves_nothing_in_remote_storage(autojump_clock: trio.testing.MockClock) -> None:
    from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    place = TieredPlace()
    async with place.broker() as scene:
        await scene.create("t", **TIERED)
        await scene.create("u", **TIERED)
        await fill(scene, "t", 30)
        await fill(scene, "u", 30)
        await until(lambda: min(scene.log("t").tiered_end_offset, scene.log("u").tiered_end_offset) > 60)
        of_u = [key for key in await place.keys() if key.startswith("u-")]
        response = await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))
        assert response.responses[0].error_code == 0
        await trio.sleep(30)
        assert await place.keys() == of_u


async def test_what_has_expired_is_sealed_so_that_it_can_be_copied(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await scene.create("t", **{**TIERED, "local_retention_ms": "5000"})
        values = await fill(scene, "t", 1)
        log = scene.log("t")
        await until(lambda: log.local_start_offset == 3)
        assert log.log_start_offset == 0
        assert await read_all(scene, "t") == list(enumerate(values))


async def test_without_a_cleanup_policy_what_is_copied_goes_from_here(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await scene.create("t", **TIERED, cleanup_policy="")
        values = await fill(scene, "t", 30)
        await until(lambda: scene.log("t").local_start_offset >= 60)
        assert await read_all(scene, "t") == list(enumerate(values))


async def test_what_is_in_both_places_counts_once(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker() as scene:
        await scene.create("t", **{**TIERED, "local_retention_bytes": "-2"}, retention_bytes="14000")
        await fill(scene, "t", 30)
        log = scene.log("t")
        await until(lambda: log.tiered_end_offset == log.segments.active.base_offset)
        assert 10000 < log.size < 14000
        log.tiered_end_offset = 0  # as long as the copier has not heard of the end of a copy
        assert scene.broker.tiering is not None
        await scene.broker.tiering._clean_up(scene.broker.replicas.partition("t", 0))
        assert log.log_start_offset == 0


async def test_a_deleted_log_is_not_copied(autojump_clock: trio.testing.MockClock) -> None:
    from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    place = TieredPlace()
    async with place.broker(remote_log_manager_task_interval_ms="3600000") as scene:
        await scene.create("t", **TIERED)
        await fill(scene, "t", 30)
        partition = scene.broker.replicas.partition("t", 0)
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
        assert (await scene.call(request)).responses[0].error_code == 0
        assert scene.broker.tiering is not None
        writes = written(scene)
        await scene.broker.tiering._copier.copy(partition)
        assert written(scene) == writes
        assert await place.keys() == []


def written(scene: Scene) -> int:
    """Records of the remote log metadata."""
    logs = [scene.broker.replicas.partition(REMOTE_LOG_METADATA, index).log for index in range(3)]
    return sum(log.log_end_offset for log in logs if log is not None)


async def test_a_log_keeps_its_start_while_nothing_tells_of_its_copies(autojump_clock: trio.testing.MockClock) -> None:
    place = TieredPlace()
    async with place.broker() as scene:
        await scene.create("t", **TIERED)
        await fill(scene, "t", 30)
        await until(lambda: scene.log("t").local_start_offset >= 60)
        keys = await place.keys()
    for name in place.files.list("data"):
        if name.startswith("__remote_log_metadata-"):
            place.files.remove_tree(f"data/{name}")
    async with place.broker() as scene:
        await trio.sleep(60)
        assert scene.log("t").log_start_offset == 0
        assert set(keys) <= set(await place.keys())


async def test_how_many_readers_there_are_is_changed_at_run_time(autojump_clock: trio.testing.MockClock) -> None:
    async with TieredPlace().broker(remote_log_reader_threads="2") as scene:
        tiering = scene.broker.tiering
        assert tiering is not None
        assert tiering._readers.total_tokens == 2
        alteration = AlterableConfig(name="remote.log.reader.threads", config_operation=0, value="5")
        resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[alteration])
        response = await scene.call(IncrementalAlterConfigsRequest(resources=[resource]))
        assert response.responses[0].error_code == 0
        assert tiering._readers.total_tokens == 5
