"""A follower's own decisions: where to truncate, and what it takes over."""

import pytest
import trio

from kwire.cluster import following
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.builder import build_batch
from kwire.storage.leader_epochs import EpochEnd
from tests.records import simple_records

from .images import topic_id
from .nodes import Cluster


@pytest.fixture
async def cluster(nursery):
    """Broker 2 follows broker 1, which it cannot reach."""
    cluster = Cluster(nursery)
    await cluster.start(1, 2)
    cluster.network.cut("broker-1", "broker-2")
    await cluster.create()
    return cluster


def batch(cluster, offset: int, *values: bytes, epoch: int = 0) -> memoryview:
    records = simple_records([(None, value) for value in values], cluster[2].clock.wall_ms(), offset)
    return memoryview(build_batch(records, base_offset=offset, leader_epoch=epoch))


async def follow(cluster, *batches: memoryview, high_watermark: int = 0, log_start_offset: int = 0):
    partition = cluster[2].partition()
    for data in batches or (None,):
        await following.append(partition, partition.leader_epoch, data, high_watermark, log_start_offset)
    return partition


@pytest.mark.parametrize(
    ("diverging", "offset"),
    [
        (EpochEnd(3, 7), 7),  # both know epoch 3: the shorter one of both
        (EpochEnd(3, 99), 8),
        (EpochEnd(2, 3), 4),  # epoch 2 is not here: back to the end of epoch 1, the next fetch tells more
        (EpochEnd(4, 9), 8),
        (EpochEnd(5, 9), 9),
        (EpochEnd(5, 99), 10),
        (EpochEnd(0, 2), 0),  # before all epochs known here
        (EpochEnd(7, 3), 3),  # after all of them
        (EpochEnd(-1, 3), 3),
        (EpochEnd(7, -1), 1),  # nothing known: the high watermark
    ],
)
async def test_where_to_truncate(cluster, autojump_clock, diverging, offset):
    values = [b"x"] * 4
    cluster[2].partition().leader_epoch = 5
    partition = await follow(
        cluster, batch(cluster, 0, *values, epoch=1), batch(cluster, 4, *values, epoch=3), high_watermark=1
    )
    await follow(cluster, batch(cluster, 8, b"x", b"x", epoch=5))
    assert partition.log.epochs.entries() == [(1, 0), (3, 4), (5, 8)]
    assert following.truncation_offset(partition.log, diverging) == offset


async def test_watermarks_are_taken_over_as_far_as_the_log_goes(cluster, autojump_clock):
    partition = await follow(cluster, batch(cluster, 0, b"a", b"b"), high_watermark=7, log_start_offset=1)
    assert (partition.log.high_watermark, partition.log.log_start_offset) == (2, 1)
    await follow(cluster, high_watermark=1, log_start_offset=0)
    assert (partition.log.high_watermark, partition.log.log_start_offset) == (2, 1)  # never back
    await follow(cluster, high_watermark=9, log_start_offset=5)
    assert (partition.log.high_watermark, partition.log.log_start_offset) == (2, 2)


async def test_what_a_later_leader_wrote_is_not_taken_for_the_answer_of_this_one(cluster, autojump_clock):
    """KAFKA-18723: it was no leader any more when it read its file for the answer."""
    later = batch(cluster, 1, b"b", epoch=cluster[2].partition().leader_epoch + 1)
    partition = await follow(cluster, memoryview(b"".join((batch(cluster, 0, b"a"), later, batch(cluster, 2, b"c")))))
    assert partition.log.log_end_offset == 1
    assert partition.log.epochs.latest_epoch == partition.leader_epoch
    await follow(cluster, later)
    assert partition.log.log_end_offset == 1


async def test_an_empty_log_may_begin_amid_a_batch(cluster, autojump_clock):
    """The leader deleted records up to an offset within its first batch, and its follower begins there."""
    partition = cluster[2].partition()
    following.start_at(partition, 0, 2)
    assert partition.log.log_start_offset == partition.log.log_end_offset == 2
    await follow(cluster, batch(cluster, 0, b"a", b"b", b"c"), high_watermark=3, log_start_offset=2)
    assert (partition.log.log_start_offset, partition.log.log_end_offset) == (2, 3)


async def test_a_log_with_records_takes_no_earlier_batch(cluster, autojump_clock):
    partition = await follow(cluster, batch(cluster, 0, b"a", b"b"))
    with pytest.raises(KafkaError):
        await follow(cluster, batch(cluster, 1, b"b", b"c"))
    assert partition.log.log_end_offset == 2


async def test_only_in_the_epoch_it_was_fetched_for(cluster, autojump_clock):
    partition = cluster[2].partition()
    await cluster.elect(1)
    for act in (
        lambda epoch: following.truncate_to(partition, epoch, 0),
        lambda epoch: following.start_at(partition, epoch, 0),
        lambda epoch: following.truncate(partition, epoch, EpochEnd(0, 0)),
    ):
        act(1)
        for epoch in (0, 2):
            with pytest.raises(KafkaError) as raised:
                act(epoch)
            assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    await cluster.elect(2)
    with pytest.raises(KafkaError) as raised:
        await following.append(partition, 2, None, 0, 0)
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_answers_for_an_earlier_epoch_are_not_taken(cluster, autojump_clock):
    """FENCED_LEADER_EPOCH is on its way when the follower learns of the new epoch: it must go on with that one."""
    cluster.network.heal("broker-1", "broker-2")
    await trio.sleep(2.2)  # a fetch waits at the leader
    cluster.network.cut("broker-1", "broker-2", both_ways=False)
    cluster[1].answer[topic_id("t"), 0] = ErrorCode.FENCED_LEADER_EPOCH
    await cluster[1].append(b"a")
    await trio.sleep(0.1)
    assert not cluster[1].answer
    await cluster.elect(1)
    cluster.network.heal("broker-1", "broker-2")
    assert await cluster[1].produce(b"b") is ErrorCode.NONE
