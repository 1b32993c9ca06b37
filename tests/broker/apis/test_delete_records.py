"""DeleteRecords: which offsets are taken, each partition once, waiting for followers."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kwire.protocol.messages.fetch import ReplicaState
from tests.broker.apis.fetches import at, fetch
from tests.broker.scene import Scene, running

REFUSED = -1
"""The low watermark with an error."""


def of(topic: str, *partitions: tuple[int, int]) -> DeleteRecordsTopic:
    """(partition, offset)"""
    return DeleteRecordsTopic(
        name=topic,
        partitions=[DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in partitions],
    )


async def delete(scene: Scene, *topics: DeleteRecordsTopic, version: int = 2) -> dict[str, list[tuple[int, int, int]]]:
    """By topic: (partition, error code, low watermark)."""
    return told(await scene.call(DeleteRecordsRequest(topics=list(topics), timeout_ms=2000), version))


def told(response: DeleteRecordsResponse) -> dict[str, list[tuple[int, int, int]]]:
    return {
        topic.name: [(each.partition_index, each.error_code, each.low_watermark) for each in topic.partitions]
        for topic in response.topics
    }


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize(
    ("offset", "code", "low_watermark"),
    [
        (3, 0, 3),
        (2, 0, 2),
        (1, 0, 2),  # before the start: nothing is to be done
        (0, 0, 2),
        (5, 0, 5),
        (-1, 0, 5),  # all
        (6, ErrorCode.OFFSET_OUT_OF_RANGE, REFUSED),
        (-2, ErrorCode.OFFSET_OUT_OF_RANGE, REFUSED),
        (2**63 - 1, ErrorCode.OFFSET_OUT_OF_RANGE, REFUSED),
        (-(2**63), ErrorCode.OFFSET_OUT_OF_RANGE, REFUSED),
    ],
)
async def test_offsets(version: int, offset: int, code: int, low_watermark: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", *[b"v"] * 5)
        assert await delete(scene, of("t", (0, 2))) == {"t": [(0, 0, 2)]}
        assert await delete(scene, of("t", (0, offset)), version=version) == {"t": [(0, code, low_watermark)]}
        assert scene.log("t").log_start_offset == (2 if code else low_watermark)


async def test_of_a_partition_named_twice_the_last_counts(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 2)
        for partition in (0, 1):
            await scene.produce("t", *[b"v"] * 5, partition=partition)
        assert await delete(scene, of("t", (0, 4), (0, 1)), of("t"), of("t", (1, 2))) == {"t": [(0, 0, 1), (1, 0, 2)]}
        assert [scene.log("t", index).log_start_offset for index in (0, 1)] == [1, 2]
        assert await delete(scene, of("t")) == {}


async def test_one_bad_partition_does_not_harm_the_others(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", *[b"v"] * 3)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await delete(scene, of("t", (1, 0), (0, 2), (-1, 0)), of("absent", (0, 0)), of("", (0, 0))) == {
            "t": [(1, missing, REFUSED), (0, 0, 2), (-1, missing, REFUSED)],
            "absent": [(0, missing, REFUSED)],
            "": [(0, missing, REFUSED)],
        }


@pytest.mark.parametrize(
    ("policy", "code"),
    [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", ErrorCode.NONE), ("delete", ErrorCode.NONE)],
)
async def test_what_is_only_compacted_keeps_its_records(policy: str, code: ErrorCode, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", cleanup_policy=policy)
        assert await delete(scene, of("t", (0, 0))) == {"t": [(0, code, REFUSED if code else 0)]}


async def test_the_coordinators_topics_keep_their_records(autojump_clock) -> None:
    async with running() as scene:
        for name in ("__consumer_offsets", "__transaction_state", "__share_group_state"):
            await scene.create(name)
            assert await delete(scene, of(name, (0, 0), (1, 0))) == {
                name: [
                    (0, ErrorCode.INVALID_TOPIC_EXCEPTION, REFUSED),
                    (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, REFUSED),
                ]
            }


async def test_only_a_leader_deletes(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.place("t", 2, 1)
        assert await delete(scene, of("t", (0, 0))) == {"t": [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, REFUSED)]}


async def followed(scene: Scene) -> None:
    """Topic t with three records, and a follower from now on."""
    await scene.create("t")
    await scene.produce("t", *[b"v"] * 3)
    await scene.place("t", 1, 2)


async def follow(scene: Scene, log_start_offset: int) -> None:
    """A fetch of the follower, which has everything."""
    state = ReplicaState(replica_id=2, replica_epoch=1)
    response = await fetch(scene, at("t", 3, log_start_offset=log_start_offset), replica_state=state)
    assert response.responses[0].partitions[0].error_code == 0


async def test_the_answer_waits_for_the_followers(autojump_clock) -> None:
    async with running() as scene, trio.open_nursery() as nursery:
        await followed(scene)
        await follow(scene, 0)
        connection = await scene.another_connection()
        answers = []

        async def run() -> None:
            request = DeleteRecordsRequest(topics=[of("t", (0, 2))], timeout_ms=2000)
            answers.append(told(await connection.call(request)))
            connection.close()

        nursery.start_soon(run)
        for reached in (0, 1):
            await follow(scene, reached)
            await trio.testing.wait_all_tasks_blocked()
            assert answers == []
        assert scene.log("t").log_start_offset == 2
        await follow(scene, 2)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == [{"t": [(0, 0, 2)]}]
        assert trio.current_time() == 0


async def test_followers_that_are_not_heard_of(autojump_clock) -> None:
    async with running() as scene:
        await followed(scene)
        await follow(scene, 0)
        assert await delete(scene, of("t", (0, 2))) == {"t": [(0, ErrorCode.REQUEST_TIMED_OUT, REFUSED)]}
        assert trio.current_time() == pytest.approx(2)


async def test_no_time_for_the_followers(autojump_clock) -> None:
    async with running() as scene:
        await followed(scene)
        await follow(scene, 0)
        answer = await scene.call(DeleteRecordsRequest(topics=[of("t", (0, 2))], timeout_ms=-1))
        assert told(answer) == {"t": [(0, ErrorCode.REQUEST_TIMED_OUT, REFUSED)]}
        assert scene.log("t").log_start_offset == 2
