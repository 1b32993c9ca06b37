"""What thousands of partitions cost a broker, counted on hundreds: memory, and what the collector walks through."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
import trio
import trio.testing

from kwire.broker.serve import _Frost
from kwire.cluster.partition import Partition
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kwire.storage.log import Log
from kwire.storage.segment import Segment

from .scene import Scene, running

COUNT = 400
STATE = PartitionImage((1,), (1,), 1)


def image(partitions: int) -> MetadataImage:
    topic = TopicImage("t", bytes(16), (STATE,) * partitions)
    return MetadataImage(topics={"t": topic}, topic_names={topic.id: "t"})


async def test_a_new_partition_takes_less_than_three_kilobytes(autojump_clock):
    async with running() as here:
        await here.create("first", 1)
        gc.collect()
        tracemalloc.start()
        try:
            await here.create("many", COUNT)
            gc.collect()
            snapshot = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
    kept = snapshot.filter_traces(
        [tracemalloc.Filter(True, "*/kwire/*"), tracemalloc.Filter(False, "*/ports/memory_*.py")]
    )
    assert sum(trace.size for trace in kept.statistics("filename")) < 3000 * COUNT


async def test_the_collector_leaves_alone_what_many_new_partitions_are_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    freezes = []
    monkeypatch.setattr(gc, "freeze", lambda: freezes.append(None))
    frost = _Frost(image(10))
    for before, after, count in ((10, 300, 0), (300, 600, 1), (600, 900, 1), (900, 10, 1), (10, 520, 2)):
        await frost.follow(image(before), image(after))
        assert len(freezes) == count, f"from {before} to {after} partitions"


def kept(topic: str) -> list[object]:
    """What there is in memory of the topic's partitions, whoever has it."""
    objects = gc.get_objects()
    found: list[object] = [each for each in objects if isinstance(each, Log | Partition) and each.topic == topic]
    return found + [each for each in objects if isinstance(each, Segment) and f"/{topic}-" in each.dir]


async def wait_for_records(here: Scene) -> None:
    """A fetch at the ends of both partitions, which waits until they are deleted."""
    connection = await here.another_connection()
    asked = [FetchPartition(partition=index, fetch_offset=1, partition_max_bytes=1000) for index in range(2)]
    topic = FetchTopic(topic_id=here.id_of("t"), partitions=asked)
    answer = await connection.call(FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1000, topics=[topic]))
    (found,) = answer.responses
    assert {partition.error_code for partition in found.partitions} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    connection.close()


@pytest.mark.parametrize("flushed", [False, True])
async def test_what_belongs_to_a_deleted_partition_goes_without_the_collector(
    autojump_clock, no_collector, flushed: bool
) -> None:
    async with running() as here, trio.open_nursery() as nursery:
        await here.create("t", 2, **{"flush_messages": "1"} if flushed else {})
        for partition in range(2):
            await here.produce("t", b"value", partition=partition)
        await trio.sleep(60)  # what looks at all partitions now and then has done so
        assert len(kept("t")) == 6
        nursery.start_soon(wait_for_records, here)
        await trio.testing.wait_all_tasks_blocked()
        await here.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000))
        await trio.sleep(120)
        assert kept("t") == []
