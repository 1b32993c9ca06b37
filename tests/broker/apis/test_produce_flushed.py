"""Produce to topics with flush.messages=1: what is answered, and seen, is on the disk, and nobody else waits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from tests.broker.scene import Scene, running
from tests.storage.held import HeldExecutor

pytestmark = pytest.mark.usefixtures("either_way")


@asynccontextmanager
async def slow_disk(partitions: int = 1) -> AsyncIterator[tuple[Scene, HeldExecutor]]:
    """A broker with the topics t (each append is flushed) and u (none is), whose flushes wait to be let go."""
    async with running() as scene:
        await scene.create("t", partitions, flush_messages="1")
        await scene.create("u")
        disk = scene.broker.logs.services.executor = HeldExecutor()
        disk.held = True
        yield scene, disk
        disk.held = False
        while disk.waiting:
            await disk.let_go()


def request(scene: Scene, topic: str, *partitions: int, acks: int = -1) -> ProduceRequest:
    blob = build_batch([Record(0, 1_700_000_000_000, b"k", b"v", [])])
    data = [PartitionProduceData(index=index, records=blob) for index in partitions]
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(topic_id=scene.id_of(topic), partition_data=data)]
    )


def codes(response: ProduceResponse) -> list[tuple[int, int]]:
    return [(each.error_code, each.base_offset) for each in response.responses[0].partition_responses]


@pytest.mark.parametrize("acks", [1, -1])
async def test_nothing_is_answered_or_seen_before_its_flush(acks: int, nursery: trio.Nursery) -> None:
    async with slow_disk() as (scene, disk):
        answers: list[ProduceResponse] = []

        async def produce() -> None:
            answers.append(await scene.call(request(scene, "t", 0, acks=acks)))

        nursery.start_soon(produce)
        await wait_all_tasks_blocked()
        log = scene.log("t")
        assert (answers, log.log_end_offset, log.high_watermark) == ([], 1, 0)
        await disk.let_go()
        assert (codes(answers[0]), log.high_watermark) == ([(0, 0)], 1)


async def test_the_partitions_of_one_request_are_flushed_side_by_side(nursery: trio.Nursery) -> None:
    async with slow_disk(5) as (scene, disk):
        answers: list[ProduceResponse] = []

        async def produce() -> None:
            answers.append(await scene.call(request(scene, "t", 0, 1, 2, 3, 4, 9)))

        nursery.start_soon(produce)
        await wait_all_tasks_blocked()
        assert len(disk.waiting) == 5
        for _ in range(5):
            assert answers == []
            await disk.let_go()
        assert codes(answers[0]) == [*[(0, 0)] * 5, (3, -1)]


async def test_other_connections_are_served_meanwhile_and_share_the_next_flush(nursery: trio.Nursery) -> None:
    async with slow_disk() as (scene, disk):
        answers: list[int] = []

        async def produce() -> None:
            connection = await scene.another_connection()
            answers.extend(offset for _, offset in codes(await connection.call(request(scene, "t", 0))))
            connection.close()

        nursery.start_soon(produce)
        await wait_all_tasks_blocked()
        for _ in range(20):
            nursery.start_soon(produce)
        await wait_all_tasks_blocked()
        assert codes(await scene.call(request(scene, "u", 0))) == [(0, 0)]
        assert (answers, len(disk.waiting)) == ([], 1)
        await disk.let_go()
        assert (answers, len(disk.waiting)) == ([0], 1)
        await disk.let_go()
        assert sorted(answers) == list(range(21))


async def test_the_requests_of_one_connection_are_answered_in_order(nursery: trio.Nursery) -> None:
    async with slow_disk() as (scene, disk):
        answers: list[tuple[str, int]] = []

        async def produce(topic: str) -> None:
            answers.extend((topic, offset) for _, offset in codes(await scene.call(request(scene, topic, 0))))

        for topic in ("t", "u", "t", "u"):
            nursery.start_soon(produce, topic)
            await wait_all_tasks_blocked()
        assert answers == []
        await disk.let_go()
        assert answers == [("t", 0), ("u", 0)]
        await disk.let_go()
        assert answers == [("t", 0), ("u", 0), ("t", 1), ("u", 1)]
