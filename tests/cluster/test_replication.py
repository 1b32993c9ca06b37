"""Leaders and followers on a mock clock: the high watermark, acks=all, ISR, fencing, truncation."""

import pytest
import trio
import trio.testing

from kwire.cluster.partition import ALL
from kwire.cluster.replica import Bound
from kwire.cluster.waiting import ReplicationWait
from kwire.protocol.errors import ErrorCode, KafkaError

from .nodes import Cluster


@pytest.fixture
async def cluster(nursery):
    return Cluster(nursery)


async def settle(seconds: float = 1.5) -> None:
    """More than a fetch's wait and a back-off."""
    await trio.sleep(seconds)


async def test_a_single_broker_commits_what_it_appends(cluster, autojump_clock):
    await cluster.start(1)
    await cluster.create(replicas=(1,))
    assert await cluster[1].produce(b"a", b"b") is ErrorCode.NONE
    partition = cluster[1].partition()
    assert partition.log.high_watermark == 2
    read = await partition.fetch(0, 1 << 20)
    assert (read.high_watermark, read.last_stable_offset, read.log_start_offset, read.log_end_offset) == (2, 2, 0, 2)


async def test_the_high_watermark_follows_the_follower(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    leader, follower = cluster[1].partition(), cluster[2].partition()
    cluster.network.cut("broker-1", "broker-2")
    await cluster[1].append(b"a", b"b")
    await settle()
    assert (leader.log.high_watermark, leader.log.log_end_offset) == (0, 2)
    assert (await leader.fetch(0, 1 << 20)).slice is None
    cluster.network.heal("broker-1", "broker-2")
    await settle()
    assert (leader.log.high_watermark, follower.log.log_end_offset) == (2, 2)
    assert follower.log.high_watermark == 2
    assert cluster[2].records() == cluster[1].records() == [(0, b"a"), (0, b"b")]


async def test_acks_all_waits_for_the_follower(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    began = trio.current_time()
    assert await cluster[1].produce(b"a") is ErrorCode.NONE
    assert trio.current_time() - began < 0.6
    cluster[1].mute = True
    await settle(1)
    assert await cluster[1].produce(b"b", timeout_s=3) is ErrorCode.REQUEST_TIMED_OUT
    assert cluster[1].values() == [b"a", b"b"]  # it stays, and is committed later


async def test_acks_all_is_woken_by_the_high_watermark_alone(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await settle()
    began = trio.current_time()
    await cluster[1].produce(b"a")
    assert trio.current_time() == began  # events only: the follower's waiting fetch, its next one, the waiter


async def test_min_insync_replicas_before_the_append(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create(isr=(1,), min_insync_replicas="2")
    cluster.network.cut("broker-1", "broker-2")
    with pytest.raises(KafkaError) as raised:
        await cluster[1].append(b"a", acks=ALL)
    assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster[1].values() == []
    await cluster[1].append(b"a", acks=1)
    assert cluster[1].partition().log.high_watermark == 0  # under min ISR nothing is committed
    cluster.network.heal("broker-1", "broker-2")
    await settle(40)
    assert cluster.state().isr == (1, 2)
    assert cluster[1].partition().log.high_watermark == 1


async def test_nothing_is_committed_while_the_isr_is_too_small(cluster, autojump_clock):
    await cluster.start(1, 2, replica_lag_time_max_ms="5000")
    await cluster.create(min_insync_replicas="2")
    await settle()
    cluster[1].mute = True
    appended = await cluster[1].append(b"a", acks=ALL)
    wait = ReplicationWait([(cluster[1].partition(), appended)])
    await settle(10)
    assert cluster.state().isr == (1,)
    assert wait.outcomes == [None]
    await cluster.configure("t", min_insync_replicas="1")
    assert await wait.finish(0) == [ErrorCode.NONE]


async def test_committed_by_too_few(cluster, autojump_clock):
    """The ISR is smaller than min.insync.replicas by the time an append proves to be committed."""
    await cluster.start(1, 2)
    await cluster.create()
    await settle()
    appended = await cluster[1].append(b"a", acks=ALL)
    await settle()
    partition = cluster[1].partition()
    assert partition.acknowledged(appended) is ErrorCode.NONE
    await cluster.elect(1, isr=(1,))
    await cluster.configure("t", min_insync_replicas="2")
    assert partition.acknowledged(appended) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


async def test_losing_leadership_ends_the_wait(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await settle()
    cluster.network.cut("broker-1", "broker-2")
    appended = await cluster[1].append(b"a", acks=ALL)
    wait = ReplicationWait([(cluster[1].partition(), appended)])
    await cluster.elect(2)
    assert wait.outcomes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert await wait.finish(10) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    with pytest.raises(KafkaError) as raised:
        await cluster[1].append(b"b")
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_leading_again_does_not_bring_a_lost_append_back(cluster, autojump_clock):
    """The offset is committed in the end, but with another's record."""
    await cluster.start(1, 2)
    await cluster.create()
    await settle()
    cluster.network.cut("broker-1", "broker-2")
    appended = await cluster[1].append(b"lost", acks=ALL)
    await cluster.elect(2, isr=(2,))
    await cluster[2].append(b"other")
    cluster.network.heal("broker-1", "broker-2")
    await settle(40)
    await cluster.elect(1)
    await settle()
    assert cluster[1].values() == [b"other"]
    assert cluster[1].partition().log.high_watermark == 1 == appended.required_offset
    assert cluster[1].partition().acknowledged(appended) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_new_epoch_of_the_same_leader_keeps_waiting_appends(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await settle()
    cluster.network.cut("broker-1", "broker-2")
    appended = await cluster[1].append(b"a", acks=ALL)
    wait = ReplicationWait([(cluster[1].partition(), appended)])
    await cluster.elect(1)
    assert wait.outcomes == [None]
    cluster.network.heal("broker-1", "broker-2")
    assert await wait.finish(60) == [ErrorCode.NONE]
    assert cluster[2].records() == [(0, b"a")]


async def test_stale_epochs_are_fenced(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await cluster.elect(1)
    await cluster[1].append(b"a")
    partition = cluster[1].partition()

    async def refusal(call) -> ErrorCode:
        with pytest.raises(KafkaError) as raised:
            await call()
        return raised.value.code

    for epoch, code in ((0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)):

        async def read(epoch: int = epoch) -> object:
            return await partition.fetch(0, 100, current_leader_epoch=epoch)

        async def fetched(epoch: int = epoch) -> object:
            return await partition.fetch_for_follower(2, 0, 100, current_leader_epoch=epoch)

        async def end(epoch: int = epoch) -> object:
            return partition.end_of_epoch(0, current_leader_epoch=epoch)

        async def listed(epoch: int = epoch) -> object:
            return await partition.list_offset(-1, current_leader_epoch=epoch)

        for call in (read, fetched, end, listed):
            assert await refusal(call) is code
    assert (await partition.fetch(0, 100, current_leader_epoch=1)).log_end_offset == 1


async def test_the_follower_truncates_where_the_histories_part(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await cluster[1].append(b"both")
    await settle()
    cluster.network.cut("broker-1", "broker-2")
    await cluster[1].append(b"only 1")
    await cluster[1].append(b"only 1 too")
    await cluster.elect(2, isr=(2,))
    await cluster[2].append(b"only 2")
    cluster.network.heal("broker-1", "broker-2")
    await settle(40)
    assert cluster[1].records() == cluster[2].records() == [(0, b"both"), (1, b"only 2")]
    assert cluster[1].partition().log.epochs.entries() == [(0, 0), (1, 1)]
    assert cluster.state().isr == (1, 2)
    assert cluster[1].partition().log.high_watermark == 2


async def test_truncation_over_several_unknown_epochs(cluster, autojump_clock):
    """Both have epochs the other has not: the follower goes back a step at a time (KIP-279)."""
    await cluster.start(1, 2)
    await cluster.create()
    await cluster[1].append(b"both")
    await settle()
    cluster.network.cut("broker-1", "broker-2")
    for epoch, value in ((1, b"x"), (3, b"y")):
        while cluster.state().leader_epoch < epoch:
            await cluster.elect(1)
        await cluster[1].append(value)
    for epoch, value in ((4, b"p"), (5, b"q")):
        while cluster.state().leader_epoch < epoch:
            await cluster.elect(2, isr=(2,))
        await cluster[2].append(value)
    await cluster.elect(2)
    assert cluster[1].records() == [(0, b"both"), (1, b"x"), (3, b"y")]
    cluster.network.heal("broker-1", "broker-2")
    await settle(40)
    assert cluster[1].records() == cluster[2].records() == [(0, b"both"), (4, b"p"), (5, b"q")]


async def test_a_follower_that_was_leader_in_an_empty_epoch_does_not_go_round_in_circles(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await cluster[1].append(b"a")
    await settle()
    cluster.network.cut("broker-1", "broker-2")
    await cluster.elect(1)  # epoch 1 has no record
    await cluster.elect(2, isr=(2,))
    cluster.network.heal("broker-1", "broker-2")
    await settle(40)
    before = len(cluster[2].fetches)
    await cluster[2].append(b"b")
    await settle()
    assert cluster[1].values() == [b"a", b"b"]
    assert len(cluster[2].fetches) - before < 8


async def test_offset_out_of_range_begins_at_the_leaders_start(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create(isr=(1,))
    cluster.network.cut("broker-1", "broker-2")
    await cluster[1].append(b"a")
    await cluster[1].append(b"b")
    await cluster[1].partition().delete_records(1)
    cluster.network.heal("broker-1", "broker-2")
    await settle(40)
    log = cluster[2].partition().log
    assert (log.log_start_offset, log.log_end_offset) == (1, 2)
    assert cluster[2].values() == [b"b"]
    assert cluster.state().isr == (1, 2)


async def test_a_leader_shorter_than_its_follower(cluster, autojump_clock):
    """An unclean election: the leader's log is a part of the follower's in the same epochs."""
    await cluster.start(1, 2)
    await cluster.create(isr=(1,))
    await cluster[1].append(b"a")
    await settle()
    cluster.network.cut("broker-1", "broker-2")
    await cluster[1].append(b"b")
    await cluster.elect(2, isr=(2,))
    cluster.network.heal("broker-1", "broker-2")
    await settle(40)
    assert cluster[1].values() == cluster[2].values() == [b"a"]
    assert cluster[1].partition().log.high_watermark == 1


async def test_the_isr_shrinks_and_grows(cluster, autojump_clock):
    await cluster.start(1, 2, 3)
    await cluster.create(replicas=(1, 2, 3))
    await settle()
    cluster.network.cut("broker-1", "broker-3")
    await cluster[1].append(b"a")
    await settle(20)
    assert cluster.state().isr == (1, 2, 3)
    await settle(40)
    assert cluster.state().isr == (1, 2)
    assert cluster[1].partition().log.high_watermark == 1
    cluster.network.heal("broker-1", "broker-3")
    await settle(40)
    assert cluster.state().isr == (1, 2, 3)
    assert cluster.state().leader_epoch == 0
    assert cluster.state().partition_epoch == 2
    assert cluster[3].values() == [b"a"]


async def test_an_idle_follower_stays_in_the_isr(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    await settle(300)
    assert cluster.state().isr == (1, 2)
    assert cluster.state().partition_epoch == 0


async def test_a_follower_proposed_for_the_isr_counts_at_once(cluster, autojump_clock):
    """Before the controller agrees, the high watermark must not run away from it: it may be the next leader."""
    await cluster.start(1, 2)
    await cluster.create(isr=(1,))
    cluster.network.cut("broker-1", "broker-2")
    await cluster[1].append(b"a")
    leadership = cluster[1].partition().leadership
    cluster.metadata.fail_next = OSError("disk full")
    partition = cluster[1].partition()
    await partition.fetch_for_follower(2, 1, 100, current_leader_epoch=0)
    assert leadership.maximal_isr == (1, 2)
    assert leadership.isr == (1,)
    await cluster[1].append(b"b")
    assert partition.log.high_watermark == 1
    await settle()
    assert cluster.state().isr == (1, 2)


async def test_a_fenced_broker_does_not_join_the_isr(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.fence(2)
    await cluster.create(isr=(1,))
    await cluster[1].append(b"a")
    await settle(5)
    assert cluster[2].values() == [b"a"]
    assert cluster.state().isr == (1,)
    await cluster.fence(2, False)
    await settle(5)
    assert cluster.state().isr == (1, 2)


async def test_fetches_of_an_earlier_life_are_refused(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    partition = cluster[1].partition()
    epoch = cluster.image.brokers[2].epoch
    await partition.fetch_for_follower(2, 0, 100, broker_epoch=epoch)
    with pytest.raises(KafkaError) as raised:
        await partition.fetch_for_follower(2, 0, 100, broker_epoch=epoch - 1)
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_strangers_are_no_followers(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create(replicas=(1,))
    partition = cluster[1].partition()
    for epoch, code in ((0, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        with pytest.raises(KafkaError) as raised:
            await partition.fetch_for_follower(2, 0, 100, current_leader_epoch=epoch)
        assert raised.value.code is code


async def test_the_followers_log_start_follows(cluster, autojump_clock):
    await cluster.start(1, 2)
    await cluster.create()
    for value in (b"a", b"b", b"c"):
        await cluster[1].produce(value)
    target, low_watermark = await cluster[1].partition().delete_records(-1)
    assert (target, low_watermark) == (3, 0)
    await settle()
    assert cluster[2].partition().log.log_start_offset == 3
    assert cluster[1].partition().low_watermark() == 3


async def test_a_new_leader_does_not_tell_the_end_before_it_knows_it(cluster, autojump_clock):
    """KIP-207: the high watermark of a new leader may be behind what the old one had told."""
    await cluster.start(1, 2, 3)
    await cluster.create(replicas=(1, 2, 3))
    await settle()
    cluster.network.cut("broker-1", "broker-3")
    await cluster[1].append(b"a")
    await trio.sleep(0.1)
    cluster.network.cut("broker-2", "broker-3")
    cluster.network.cut("broker-1", "broker-2")
    await cluster.elect(2)
    partition = cluster[2].partition()
    assert (partition.log.high_watermark, partition.log.log_end_offset) == (0, 1)
    for timestamp in (-1, 0, -3):
        with pytest.raises(KafkaError) as raised:
            await partition.list_offset(timestamp)
        assert raised.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert (await partition.list_offset(-2)).offset == 0
    assert (await partition.list_offset(-1, Bound.LOG_END)).offset == 1
    cluster.network.heal("broker-1", "broker-2")
    cluster.network.heal("broker-2", "broker-3")
    await settle()
    assert await partition.list_offset(-1) == (-1, 1, 1)
