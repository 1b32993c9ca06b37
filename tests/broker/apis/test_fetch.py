"""Fetch outside of sessions: offsets, sizes, waiting, epochs."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import trio
import trio.testing

from kwire.broker.fetching import Target
from kwire.cluster.partition import Partition
from kwire.cluster.replica import PartitionRead
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from tests.broker.apis.fetches import Asked, at, fetch, fetch_one, offsets, partitions, request
from tests.broker.scene import Scene, running

MINUTE = 60_000
"""A wait (ms) that a test would notice."""


# Offsets


@pytest.mark.parametrize("version", [4, 12, 18])
@pytest.mark.parametrize("offset", [-1, 1, 6, 2**63 - 1])
async def test_an_offset_that_is_not_in_the_log(version: int, offset: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", *[b"v"] * 5)
        asked = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
        await scene.call(DeleteRecordsRequest(topics=[asked], timeout_ms=1000))
        data = await fetch_one(scene, at("t", offset), version=version, max_wait_ms=MINUTE)
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, -1)
        assert (data.records, data.aborted_transactions) == (b"", None)
        assert trio.current_time() == 0


async def test_the_end_of_the_log_is_in_it(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", *[b"v"] * 3)
        data = await fetch_one(scene, at("t", 3))
        assert (data.error_code, data.records) == (0, b"")
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (3, 3, 0)


async def test_the_batch_of_an_offset_comes_whole(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        for _ in range(3):
            await scene.produce("t", *[b"v"] * 3)
        assert offsets(await fetch_one(scene, at("t", 4))) == [3, 6]


@pytest.mark.parametrize(("level", "aborted"), [(0, None), (1, [])])
async def test_aborted_transactions_are_for_read_committed(level: int, aborted: list | None, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", b"a")
        assert (await fetch_one(scene, at("t"), isolation_level=level)).aborted_transactions == aborted


@pytest.mark.parametrize("version", [12, 18])
async def test_an_isolation_level_that_does_not_exist(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        response = await fetch(scene, at("t"), version=version, isolation_level=2)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        codes = [data.error_code for data in partitions(response)]
        assert codes == ([ErrorCode.UNKNOWN_SERVER_ERROR] if version < 13 else [])


# What is asked for


@pytest.mark.parametrize(("version", "code"), [(12, "UNKNOWN_TOPIC_OR_PARTITION"), (13, "UNKNOWN_TOPIC_ID")])
async def test_a_topic_that_does_not_exist_is_told_at_once(version: int, code: str, autojump_clock) -> None:
    async with running() as scene:
        topic = FetchTopic(
            topic="absent" if version < 13 else "",
            topic_id=b"an unknown topic" if version >= 13 else uuids.ZERO,
            partitions=[FetchPartition(partition=4)],
        )
        response = await scene.call(FetchRequest(max_wait_ms=MINUTE, min_bytes=1, topics=[topic]), version)
        assert trio.current_time() == 0
        (told,) = response.responses
        assert (told.topic, told.topic_id) == (topic.topic, topic.topic_id)
        (data,) = told.partitions
        assert (data.partition_index, data.error_code) == (4, ErrorCode[code])
        assert data.aborted_transactions == []


@pytest.mark.parametrize("version", [12, 18])
async def test_of_a_partition_named_twice_the_last_counts(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        for _ in range(2):
            await scene.produce("t", b"a")
        response = await fetch(scene, at("t", 0), at("t", 0, 1), at("t", 1), version=version)
        assert [data.partition_index for data in partitions(response)] == [0, 1]
        assert offsets(partitions(response)[0]) == [1]


async def test_nothing_asked_is_answered_at_once(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        response = await scene.call(FetchRequest(max_wait_ms=MINUTE, min_bytes=1, topics=[FetchTopic()]))
        assert (response.error_code, response.responses) == (0, [])
        assert trio.current_time() == 0


# Sizes


async def three_batches(scene: Scene) -> int:
    """In each of two partitions; returns the size of one."""
    await scene.create("t", 2)
    for partition in (0, 1):
        for _ in range(3):
            await scene.produce("t", b"v" * 100, partition=partition)
    return scene.log("t").size // 3


@pytest.mark.parametrize(
    ("of_partition", "of_all", "expected"),
    [
        (1, 1, [[0], []]),
        (0, 0, [[0], []]),
        (1, 1 << 20, [[0], []]),
        (1 << 20, 1, [[0], []]),
        (2.5, 1 << 20, [[0, 1], [0, 1]]),
        (1 << 20, 4.5, [[0, 1, 2], [0]]),
        (2, 3.5, [[0, 1], [0]]),
    ],
)
async def test_only_the_first_batch_goes_beyond_the_limits(
    of_partition: float, of_all: float, expected: list[list[int]], autojump_clock
) -> None:
    """Limits up to ten are counted in batches."""
    async with running() as scene:
        size = await three_batches(scene)
        limit, limit_of_all = (int(each * size) if 1 < each < 10 else int(each) for each in (of_partition, of_all))
        asked = [at("t", 0, partition, max_bytes=limit) for partition in (0, 1)]
        response = await fetch(scene, *asked, max_bytes=limit_of_all)
        assert [offsets(data) for data in partitions(response)] == expected


@pytest.mark.parametrize(("of_partition", "of_all"), [(-1, 1000), (1000, -1)])
async def test_negative_sizes(of_partition: int, of_all: int, autojump_clock) -> None:
    async with running() as scene:
        await three_batches(scene)
        data = await fetch_one(scene, at("t", max_bytes=of_partition), max_bytes=of_all, max_wait_ms=MINUTE)
        assert data.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert trio.current_time() == 0


async def test_the_broker_has_a_limit_too(autojump_clock) -> None:
    async with running({"fetch.max.bytes": "1024"}) as scene:
        await scene.create("t")
        for _ in range(3):
            await scene.produce("t", b"v" * 400)
        assert offsets(await fetch_one(scene, at("t"))) == [0, 1]


# Waiting


@dataclass
class Waiting:
    """A fetch on a connection of its own, and when its answer came."""

    response: FetchResponse | None = None
    ended: float | None = None


async def begin(scene: Scene, nursery: trio.Nursery, *asked: Asked, version: int = 18, **options: Any) -> Waiting:
    """Sends a fetch; returns when it waits (or is answered)."""
    waiting = Waiting()
    connection = await scene.another_connection()
    defaults = {"max_wait_ms": MINUTE, "min_bytes": 1}
    sent = request(scene, *asked, version=version, **(defaults | options))

    async def run() -> None:
        waiting.response = await connection.call(sent, version, timeout=1000)
        waiting.ended = trio.current_time()
        connection.close()

    nursery.start_soon(run)
    await trio.testing.wait_all_tasks_blocked()
    return waiting


async def test_an_append_ends_the_wait(autojump_clock) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", 2)
        waiting = await begin(scene, nursery, at("t", 0, 0), at("t", 0, 1))
        await trio.sleep(7)
        assert waiting.response is None
        await scene.produce("t", b"a", partition=1)
        await trio.testing.wait_all_tasks_blocked()
        assert waiting.ended == 7
        assert [offsets(data) for data in partitions(waiting.response)] == [[], [0]]
        assert partitions(waiting.response)[1].high_watermark == 1


@pytest.mark.plain
async def test_what_comes_while_others_are_read_ends_the_wait(autojump_clock, monkeypatch) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", 2)
        read = Partition.fetch

        async def fetch_meanwhile(self: Partition, *arguments: Any, **options: Any) -> PartitionRead:
            if self.index == 1:
                await scene.produce("t", b"a")
            return await read(self, *arguments, **options)

        monkeypatch.setattr(Partition, "fetch", fetch_meanwhile)
        waiting = await begin(scene, nursery, at("t", 0, 0), at("t", 0, 1))
        await trio.testing.wait_all_tasks_blocked()
        assert waiting.ended == 0
        assert [offsets(data) for data in partitions(waiting.response)] == [[0], []]


@pytest.mark.plain
async def test_nothing_is_read_twice_before_something_comes(autojump_clock, monkeypatch) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", 2)
        read, reads = Partition.fetch, []

        async def counted(self: Partition, *arguments: Any, **options: Any) -> PartitionRead:
            reads.append(self.index)
            return await read(self, *arguments, **options)

        monkeypatch.setattr(Partition, "fetch", counted)
        waiting = await begin(scene, nursery, at("t", 0, 0), at("t", 0, 1))
        await trio.testing.wait_all_tasks_blocked()
        assert reads == [0, 1]
        await scene.produce("t", b"a", partition=1)
        await trio.testing.wait_all_tasks_blocked()
        assert waiting.ended == 0
        assert reads == [0, 1, 1]


async def test_too_little_waits_on_and_comes_when_the_time_is_up(autojump_clock) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t")
        waiting = await begin(scene, nursery, at("t"), min_bytes=1000)
        await scene.produce("t", b"a")
        await trio.testing.wait_all_tasks_blocked()
        assert waiting.response is None
        await trio.sleep(MINUTE / 1000 + 1)
        assert waiting.ended == MINUTE / 1000
        assert offsets(partitions(waiting.response)[0]) == [0]


@pytest.mark.parametrize("per_broker", [False, True])
async def test_no_more_is_waited_for_than_may_be_sent(per_broker: bool, autojump_clock) -> None:
    """As Apache Kafka has it, `min_bytes` is at most what the request's `max_bytes` and fetch.max.bytes let through."""
    async with running({"fetch.max.bytes": "1024"} if per_broker else None) as scene:
        await scene.create("t")
        for _ in range(2):
            await scene.produce("t", b"x" * 800)
        most = 1 << 20 if per_broker else 1024
        data = await fetch_one(scene, at("t"), max_bytes=most, min_bytes=5000, max_wait_ms=MINUTE)
        assert offsets(data)[0] == 0
        data = await fetch_one(scene, at("t", 2), max_bytes=0, min_bytes=1, max_wait_ms=MINUTE)
        assert (data.error_code, data.records) == (0, b"")
        assert trio.current_time() == 0


@pytest.mark.parametrize("isolation_level", [0, 1])
async def test_the_rest_of_an_older_segment_is_not_waited_for(isolation_level: int, autojump_clock) -> None:
    """A read ends where its segment does, so that there can't be more of it; nor while it waits for others."""
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t", 2)
        await scene.produce("t", b"a")
        scene.log("t").roll()
        limits = {"min_bytes": 10_000, "max_wait_ms": MINUTE, "isolation_level": isolation_level}
        assert offsets(await fetch_one(scene, at("t"), **limits)) == [0]
        assert trio.current_time() == 0
        waiting = await begin(scene, nursery, at("t", 1), at("t", 0, 1), **limits)
        await scene.produce("t", b"b")
        await trio.testing.wait_all_tasks_blocked()
        assert waiting.response is None
        scene.log("t").roll()
        await scene.produce("t", b"c")
        await trio.testing.wait_all_tasks_blocked()
        assert waiting.ended == 0
        assert [offsets(data) for data in partitions(waiting.response)] == [[1], []]


@pytest.mark.parametrize(("min_bytes", "max_wait_ms"), [(0, MINUTE), (-1, MINUTE), (1, 0), (1, -1)])
async def test_some_fetches_wait_for_nothing(min_bytes: int, max_wait_ms: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        data = await fetch_one(scene, at("t"), min_bytes=min_bytes, max_wait_ms=max_wait_ms)
        assert (data.error_code, data.records) == (0, b"")
        assert trio.current_time() == 0


async def move(scene: Scene) -> None:
    await scene.place("t", 2)


async def delete(scene: Scene) -> None:
    await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))
    assert not scene.broker.store.image.topics


@pytest.mark.parametrize("version", [12, 18])
@pytest.mark.parametrize(
    ("end", "code"), [(move, ErrorCode.NOT_LEADER_OR_FOLLOWER), (delete, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
)
async def test_the_end_of_a_partition_ends_the_wait(
    version: int, end: Callable[[Scene], Awaitable[None]], code: ErrorCode, autojump_clock
) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await scene.create("t")
        waiting = await begin(scene, nursery, at("t"), version=version)
        await end(scene)
        await trio.testing.wait_all_tasks_blocked()
        assert waiting.ended == 0
        (data,) = partitions(waiting.response)
        assert (data.error_code, data.aborted_transactions) == (code, None)


# Epochs


@pytest.mark.parametrize("version", [9, 12, 16, 18])
async def test_the_leader_epoch_that_a_reader_believes_in(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.place("t", 1)  # epoch 1
        codes = {}
        for epoch in (-2, -1, 0, 1, 2):
            response = await fetch(scene, at("t", current_leader_epoch=epoch), version=version)
            (data,) = partitions(response)
            codes[epoch] = data.error_code
            leader = (data.current_leader.leader_id, data.current_leader.leader_epoch)
            hinted = version >= 16 and epoch == 0
            assert leader == ((1, 1) if hinted else (-1, -1))
            assert [node.node_id for node in response.node_endpoints] == ([1] if hinted else [])
        assert codes == {
            -2: 0,
            -1: 0,
            0: ErrorCode.FENCED_LEADER_EPOCH,
            1: 0,
            2: ErrorCode.UNKNOWN_LEADER_EPOCH,
        }


@pytest.mark.parametrize("version", [15, 16])
async def test_who_does_not_lead_names_the_leader(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.place("t", 2)
        response = await fetch(scene, at("t"), version=version)
        (data,) = partitions(response)
        assert (data.error_code, data.aborted_transactions) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        leader = (data.current_leader.leader_id, data.current_leader.leader_epoch)
        nodes = [(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
        if version < 16:
            assert (leader, nodes) == ((-1, -1), [])
        else:
            assert (leader, nodes) == ((2, 1), [(2, "neighbour", 9093, "rack")])


@pytest.mark.parametrize("version", [12, 18])
async def test_a_reader_of_another_history_learns_where_it_left(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", *[b"v"] * 3)
        await scene.place("t", 1)
        await scene.produce("t", *[b"v"] * 2)
        diverging = at("t", 5, last_fetched_epoch=0)
        data = await fetch_one(scene, diverging, version=version, min_bytes=1000, max_wait_ms=MINUTE)
        assert (data.error_code, data.records) == (0, b"")
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 3)
        assert data.high_watermark == 5
        assert trio.current_time() == 0
        same = await fetch_one(scene, at("t", 3, last_fetched_epoch=0), version=version)
        assert (same.diverging_epoch.epoch, offsets(same)) == (-1, [3])


# Followers


@pytest.mark.parametrize("version", [12, 14, 15, 18])
async def test_a_broker_that_is_no_replica(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        who: dict[str, Any] = {"replica_id": 7} if version < 15 else {"replica_state": ReplicaState(replica_id=7)}
        for epoch, code in ((-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (0, ErrorCode.UNKNOWN_LEADER_EPOCH)):
            response = await fetch(scene, at("t", current_leader_epoch=epoch), version=version, **who)
            assert [data.error_code for data in partitions(response)] == [code]
            assert response.node_endpoints == []


async def test_nothing_is_left_of_a_partition_that_is_not_there(autojump_clock, no_collector) -> None:
    async with running() as scene:
        await scene.create("t")
        await fetch(scene, at("t"), at("t", 0, 7))
        await trio.testing.wait_all_tasks_blocked()
        assert not [each for each in gc.get_objects() if isinstance(each, Target)]
