"""Who listens to a topic hears which of its partitions this broker begins and ceases to lead."""

import errno

import pytest
import trio

from kwire.metadata.changes import PartitionsAdded, TopicCreated, TopicDeleted
from kwire.metadata.image import PartitionImage, TopicImage
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.builder import build_batch
from tests.records import simple_records

from .nodes import Cluster


class Listener:
    """What was told, in order: (partition, leader epoch), the epoch None for a resignation."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int | None]] = []
        self.logs = []

    def lead(self, index, log) -> None:
        self.told.append((index, log.leader_epoch))
        self.logs.append(log)

    def resign(self, index) -> None:
        self.told.append((index, None))

    def news(self) -> list[tuple[int, int | None]]:
        told, self.told = self.told, []
        return told


@pytest.fixture
async def cluster(nursery):
    cluster = Cluster(nursery)
    await cluster.start(1, 2)
    return cluster


@pytest.fixture
def listener(cluster):
    listener = Listener()
    cluster[1].replicas.listen("t", listener)
    return listener


async def test_leadership_comes_and_goes(cluster, listener, autojump_clock):
    await cluster.create("other")
    await cluster.create(partitions=2)
    assert listener.news() == [(0, 0), (1, 0)]
    await cluster.elect(2)
    assert listener.news() == [(0, None)]
    await cluster.elect(1)
    assert listener.news() == [(0, 2)]
    await cluster.elect(1)
    assert listener.news() == [(0, 3)]  # the same leader begins anew
    await cluster.commit(PartitionsAdded("t", (PartitionImage((1,), (1,), 1), PartitionImage((2,), (2,), 2))))
    assert listener.news() == [(2, 0)]


async def test_what_is_led_already_is_told_at_once(cluster, autojump_clock):
    await cluster.create(partitions=2)
    await cluster.elect(2)
    listener = Listener()
    cluster[1].replicas.listen("t", listener)
    assert listener.news() == [(1, 0)]


async def test_changes_of_the_isr_are_no_news(cluster, listener, autojump_clock):
    await cluster.create(isr=(1,))
    assert listener.news() == [(0, 0)]
    await trio.sleep(5)
    assert cluster.state().isr == (1, 2)
    assert listener.news() == []


async def test_a_deleted_topic_is_resigned_from(cluster, listener, autojump_clock):
    await cluster.create()
    await cluster.commit(TopicDeleted("t"))
    assert listener.news() == [(0, 0), (0, None)]
    await cluster.create(replicas=(1,))
    anew = TopicCreated(TopicImage("t", b"n" * 16, (PartitionImage((1,), (1,), 1),)))
    await cluster.commit(TopicDeleted("t"), anew)
    assert listener.news() == [(0, 0), (0, None), (0, 0)]


async def test_a_log_that_is_lost_is_not_led(cluster, listener, autojump_clock):
    await cluster.create(replicas=(1,))
    path = cluster[1].partition().log.log_dir.path

    def fault(operation: str, name: str, size: int) -> None:
        if name.startswith(path) and operation == "write":
            raise OSError(errno.EIO, "broken", name)

    cluster[1].files.fault = fault
    with pytest.raises(KafkaError):
        await cluster[1].append(b"a")
    assert listener.news() == [(0, 0), (0, None)]
    await cluster.elect(1)
    assert listener.news() == []


async def test_the_word_comes_when_the_role_is_taken_and_not_before(cluster, listener, autojump_clock):
    """Nothing that was begun in the old role comes after it, and the log can be used in the new one."""
    await cluster.create()
    (first,) = listener.logs
    await first.append(_batch(cluster))
    await cluster.elect(1)
    _, second = listener.logs
    assert second.end == 1
    assert await second.append(_batch(cluster)) == 2


def _batch(cluster) -> bytes:
    return build_batch(simple_records([(b"k", b"v")], cluster[1].clock.wall_ms()))
