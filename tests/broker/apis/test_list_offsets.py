"""ListOffsets: special timestamps and the versions that know them, times, each partition once."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from tests.broker.scene import Scene, running
from tests.records import simple_records

VERSIONS = range(1, 12)
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
CONSUMER, DEBUGGER = -1, -2
TIME = 1_699_999_000_000


def of(topic: str, *partitions: int, timestamp: int = LATEST, epoch: int = -1) -> ListOffsetsTopic:
    return ListOffsetsTopic(
        name=topic,
        partitions=[
            ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
            for index in partitions
        ],
    )


async def ask(
    scene: Scene, *topics: ListOffsetsTopic, version: int = 11, replica_id: int = CONSUMER, isolation_level: int = 0
) -> list[tuple[str, list[ListOffsetsPartitionResponse]]]:
    """(topic, partitions) of the answer."""
    request = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=list(topics))
    return [(topic.name, topic.partitions) for topic in (await scene.call(request, version)).topics]


async def ask_one(scene: Scene, *, version: int = 11, replica_id: int = CONSUMER, **options: Any) -> tuple[int, ...]:
    """(error code, timestamp, offset, leader epoch) of partition 0 of topic t."""
    ((_, (found,)),) = await ask(scene, of("t", 0, **options), version=version, replica_id=replica_id)
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


async def filled(scene: Scene) -> None:
    """Topic t with records of three times, the second of which is the latest."""
    await scene.create("t")
    for time_ms in (TIME, TIME + 200, TIME + 100):
        response = await scene.produce_blob("t", build_batch([Record(0, time_ms, None, b"v", [])]))
        assert response.error_code == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("timestamp", "since", "found"),
    [
        (LATEST, 1, (-1, 3, 0)),
        (EARLIEST, 1, (-1, 0, 0)),
        (MAX_TIMESTAMP, 7, (TIME + 200, 1, 0)),
        (EARLIEST_LOCAL, 8, (-1, 0, 0)),
        (LATEST_TIERED, 9, (-1, -1, -1)),
        (EARLIEST_PENDING_UPLOAD, 11, (-1, -1, -1)),
        (-7, 12, ()),
        (-(2**63), 12, ()),
    ],
)
async def test_each_version_knows_its_special_timestamps(
    version: int, timestamp: int, since: int, found: tuple[int, int, int], autojump_clock
) -> None:
    async with running() as scene:
        await filled(scene)
        told = await ask_one(scene, version=version, timestamp=timestamp)
        if version < since:
            assert told == (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)
        else:
            time_ms, offset, epoch = found
            assert told == (0, time_ms, offset, epoch if version >= 4 else -1)


@pytest.mark.parametrize(
    ("time_ms", "found"),
    [(0, (TIME, 0, 0)), (TIME, (TIME, 0, 0)), (TIME + 1, (TIME + 200, 1, 0)), (TIME + 201, (-1, -1, -1))],
)
async def test_the_first_offset_of_a_time(time_ms: int, found: tuple[int, int, int], autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        assert await ask_one(scene, timestamp=time_ms) == (0, *found)


@pytest.mark.parametrize("version", [1, 11])
async def test_a_partition_named_twice_is_refused_once(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t", 3)
        await scene.create("u")
        asked = (of("t", 0, 1, 1), of("u", 0), of("t", 2, 2, 5), of("t"))
        (t, t_told), (u, u_told) = await ask(scene, *asked, version=version)
        assert (t, u) == ("t", "u")
        assert [(each.partition_index, each.error_code) for each in t_told] == [
            (0, 0),
            (1, ErrorCode.INVALID_REQUEST),
            (2, ErrorCode.INVALID_REQUEST),
            (5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert [each.error_code for each in u_told] == [0]


async def test_a_topic_without_partitions_is_not_answered(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        assert await ask(scene, of("t")) == []


async def test_a_topic_that_does_not_exist(autojump_clock) -> None:
    async with running() as scene:
        for name in ("absent", "", "bad name"):
            ((told, (found,)),) = await ask(scene, of(name, 0))
            assert (told, found.error_code) == (name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            assert (found.timestamp, found.offset, found.leader_epoch) == (-1, -1, -1)


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, TIME])
async def test_the_leader_epoch_that_a_client_believes_in(timestamp: int, autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        await scene.place("t", 1)  # epoch 1
        codes = {epoch: (await ask_one(scene, timestamp=timestamp, epoch=epoch))[0] for epoch in (-1, 0, 1, 2)}
        assert codes == {-1: 0, 0: ErrorCode.FENCED_LEADER_EPOCH, 1: 0, 2: ErrorCode.UNKNOWN_LEADER_EPOCH}


async def test_only_a_leader_answers_but_to_a_debugger(autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        await scene.place("t", 2, 1)
        assert await ask_one(scene) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1, -1)
        assert await ask_one(scene, replica_id=DEBUGGER) == (0, -1, 3, 1)


@pytest.mark.parametrize("replica_id", [CONSUMER, DEBUGGER, 2])
async def test_consumers_see_up_to_the_high_watermark_only(replica_id: int, autojump_clock) -> None:
    async with running() as scene:
        await filled(scene)
        await scene.place("t", 1, 2)
        response = await scene.produce_blob("t", build_batch([Record(0, TIME + 300, None, b"v", [])]), acks=1)
        assert response.error_code == 0
        end = 3 if replica_id == CONSUMER else 4
        assert await ask_one(scene, replica_id=replica_id) == (0, -1, end, 1)
        found = await ask_one(scene, replica_id=replica_id, timestamp=TIME + 300)
        assert found == ((0, -1, -1, -1) if replica_id == CONSUMER else (0, TIME + 300, 3, 1))


async def test_an_isolation_level_that_does_not_exist(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        ((_, (told,)),) = await ask(scene, of("t", 0), isolation_level=2)
        assert told.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
async def test_a_new_leader_does_not_know_the_end_yet(version: int, code: ErrorCode, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.place("t", 1, 2)
        await scene.produce_blob("t", build_batch(simple_records([(None, b"v")], 0)), acks=1)
        await scene.place("t", 1, 2)
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
        )
        response = await scene.call(request, version)
        assert response.topics[0].partitions[0].error_code == code
