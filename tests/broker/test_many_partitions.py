"""What thousands of partitions cost a broker, counted on hundreds: memory, and what the collector walks through."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from kwire.broker.serve import _Frost
from kwire.metadata.image import MetadataImage, PartitionImage, TopicImage

from .scene import running

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
