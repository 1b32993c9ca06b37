"""Who is in sync, and what the high watermark waits for, while proposals for the ISR are under way."""

import weakref

import pytest
import trio

from kwire.metadata.image import PartitionImage
from kwire.protocol.errors import ErrorCode

from .nodes import Cluster

LAG = 30
"""replica.lag.time.max.ms in seconds."""


@pytest.fixture
async def cluster(nursery):
    """Broker 1 leads; broker 2 is spoken for by the test; no proposal reaches the controller."""
    cluster = Cluster(nursery)
    await cluster.start(1, 2)
    cluster.network.cut("broker-1", "broker-2")
    cluster.proposals = []
    cluster[1].replicas.propose_isr = cluster.proposals.append
    return cluster


async def fetch(cluster, offset: int) -> None:
    await cluster[1].partition().fetch_for_follower(2, offset, 100)


def members(cluster) -> list[list[int]]:
    return [sorted(proposal.isr) for proposal in cluster.proposals]


async def test_a_follower_joins_at_the_high_watermark(cluster, autojump_clock):
    await cluster.create(isr=(1,))
    for value in (b"a", b"b"):
        await cluster[1].append(value)
    await fetch(cluster, 1)
    assert not cluster.proposals
    await fetch(cluster, 2)
    assert members(cluster) == [[1, 2]]
    await fetch(cluster, 2)
    assert len(cluster.proposals) == 1  # one at a time


async def test_a_follower_joins_only_with_all_that_may_have_been_committed(cluster, autojump_clock):
    """A new leader's high watermark may be behind what the leader before it had committed: all it began with counts."""
    await cluster.create(isr=(1,), min_insync_replicas="2")
    await cluster[1].append(b"a")
    await cluster.elect(1)
    assert cluster[1].partition().log.high_watermark == 0
    await fetch(cluster, 0)
    assert not cluster.proposals
    await fetch(cluster, 1)
    assert members(cluster) == [[1, 2]]


async def test_a_proposed_member_counts_before_it_is_agreed_on(cluster, autojump_clock):
    await cluster.create(isr=(1,))
    await fetch(cluster, 0)
    await trio.sleep(2 * LAG)  # neither agreed nor refused, and the follower is silent
    await cluster[1].append(b"a")
    assert cluster[1].partition().log.high_watermark == 0


async def test_a_member_proposed_for_removal_counts_until_that_is_agreed_on(cluster, autojump_clock):
    await cluster.create()
    await fetch(cluster, 0)
    await cluster[1].append(b"a")
    await trio.sleep(2 * LAG)
    assert members(cluster) == [[1]]
    await cluster[1].append(b"b")
    partition = cluster[1].partition()
    assert partition.log.high_watermark == 0
    (proposal,) = cluster.proposals
    proposal.committed(PartitionImage((1, 2), (1,), 1, leader_epoch=0, partition_epoch=1))
    assert partition.log.high_watermark == 2
    assert (partition.leadership.isr, partition.partition_epoch) == ((1,), 1)


async def test_a_doubtful_outcome_keeps_the_larger_isr(cluster, autojump_clock):
    await cluster.create(isr=(1,))
    await fetch(cluster, 0)
    await trio.sleep(2 * LAG)
    await cluster[1].append(b"a")
    partition = cluster[1].partition()
    (proposal,) = cluster.proposals
    for code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.UNKNOWN_TOPIC_ID):
        proposal.refused(code)
        assert partition.leadership.maximal_isr == (1, 2)
    proposal.refused(ErrorCode.INELIGIBLE_REPLICA)  # certainly not made true
    assert partition.leadership.maximal_isr == (1,)


async def test_outcomes_of_an_earlier_epoch_are_ignored(cluster, autojump_clock):
    await cluster.create(isr=(1,))
    await fetch(cluster, 0)
    await cluster.elect(1)
    (proposal,) = cluster.proposals
    proposal.committed(PartitionImage((1, 2), (1, 2), 1, leader_epoch=0, partition_epoch=1))
    leadership = cluster[1].partition().leadership
    assert (leadership.isr, leadership.maximal_isr) == ((1,), (1,))


async def test_the_high_watermark_waits_for_who_is_about_to_join(cluster, autojump_clock):
    await cluster.create(isr=(1,), replicas=(1, 2))
    await cluster[1].append(b"a")
    await cluster[1].append(b"b")
    partition = cluster[1].partition()
    assert partition.log.high_watermark == 2
    partition.leadership._pending = object()  # no proposal can be made now
    await fetch(cluster, 2)
    await cluster[1].append(b"c")
    assert partition.log.high_watermark == 2
    await trio.sleep(LAG + 1)
    await cluster[1].append(b"d")
    assert partition.log.high_watermark == 4


async def test_a_proposal_goes_without_the_collector(cluster, autojump_clock, no_collector):
    await cluster.create(isr=(1,))
    await fetch(cluster, 0)
    (proposal,) = cluster.proposals
    cluster.proposals.clear()
    kept = weakref.ref(proposal.committed)
    del proposal
    assert kept() is None
