"""One partition: reads up to a bound, look-ups, deletions, who waits, and roles that change under way."""

from dataclasses import replace

import pytest
import trio
import trio.testing

from kwire.cluster.partition import ALL
from kwire.cluster.replica import Bound
from kwire.cluster.waiting import ReplicationWait
from kwire.metadata.changes import PartitionChanged
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.header import iter_batches
from kwire.storage.leader_epochs import EpochEnd
from kwire.storage.log import Log
from kwire.storage.validated import Origin
from tests.records import simple_records

from .nodes import Cluster, Wakeup


@pytest.fixture
async def cluster(nursery):
    cluster = Cluster(nursery)
    await cluster.start(1, 2)
    return cluster


def code_of(raised) -> ErrorCode:
    return raised.value.code


def offsets(read) -> list[int]:
    return [] if read.slice is None else [header.base_offset for header, _ in iter_batches(read.slice.read())]


async def half_replicated(cluster):
    """The leader of two records of which the follower has the first."""
    await cluster.create()
    await cluster[1].produce(b"a")
    cluster.network.cut("broker-1", "broker-2")
    await cluster[1].append(b"b")
    return cluster[1].partition()


async def test_bounds(cluster, autojump_clock):
    partition = await half_replicated(cluster)
    assert offsets(await partition.fetch(0, 1000)) == [0]
    assert offsets(await partition.fetch(0, 1000, Bound.LAST_STABLE_OFFSET)) == [0]
    assert (await partition.fetch(0, 1000, Bound.LAST_STABLE_OFFSET)).aborted == []
    assert offsets(await partition.fetch(0, 1000, Bound.LOG_END)) == [0, 1]
    assert offsets(await partition.fetch(1, 1000)) == []
    assert offsets(await partition.fetch(2, 1000)) == []
    for offset in (-1, 3):
        with pytest.raises(KafkaError) as raised:
            await partition.fetch(offset, 1000)
        assert code_of(raised) is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_batch_too_large_comes_only_where_one_must_come(cluster, autojump_clock):
    partition = await half_replicated(cluster)
    assert (await partition.fetch(0, 10)).slice is None
    assert offsets(await partition.fetch(0, 10, min_one=True)) == [0]


async def test_open_transactions(cluster, autojump_clock):
    await cluster.create(replicas=(1,))
    partition = cluster[1].partition()

    records = simple_records([(None, b"in")], cluster[1].clock.wall_ms())
    batch = build_batch(records, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    guard = partition.begin_verification(7, 0, 0, supports_epoch_bump=True)
    await partition.append(batch, 1, origin=Origin.COORDINATOR, verification=guard)
    await cluster[1].append(b"out")
    read = await partition.fetch(0, 1000)
    assert (read.last_stable_offset, read.high_watermark) == (0, 2)
    assert offsets(read) == [0, 1]
    assert offsets(await partition.fetch(0, 1000, Bound.LAST_STABLE_OFFSET)) == []
    assert await partition.list_offset(-1, Bound.LAST_STABLE_OFFSET) == (-1, 0, 0)
    assert await partition.list_offset(-1) == (-1, 2, 0)


async def test_diverging_readers(cluster, autojump_clock):
    await cluster.create(replicas=(1,))
    partition = cluster[1].partition()
    await cluster[1].append(b"a")
    await cluster.elect(1)
    await cluster.elect(1)
    await cluster[1].append(b"b")  # epochs 0 at 0, 1 at 1, 2 at 1
    assert (await partition.fetch(1, 1000, last_fetched_epoch=0)).diverging is None
    assert (await partition.fetch(2, 1000, last_fetched_epoch=0)).diverging == EpochEnd(0, 1)
    assert (await partition.fetch(1, 1000, last_fetched_epoch=2)).diverging is None
    with pytest.raises(KafkaError) as raised:
        await partition.fetch(1, 1000, last_fetched_epoch=3)
    assert code_of(raised) is ErrorCode.OFFSET_OUT_OF_RANGE
    diverged = await partition.fetch(5, 1000, last_fetched_epoch=1)
    assert (diverged.diverging, diverged.slice, diverged.log_end_offset) == (EpochEnd(0, 1), None, 2)
    await partition.delete_records(1)
    with pytest.raises(KafkaError) as raised:
        await partition.fetch(0, 1000, last_fetched_epoch=2)
    assert code_of(raised) is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_ends_of_epochs(cluster, autojump_clock):
    await cluster.create(replicas=(1,))
    partition = cluster[1].partition()
    assert partition.end_of_epoch(0) == EpochEnd(0, 0)
    await cluster[1].append(b"a")
    await cluster.elect(1)
    assert partition.end_of_epoch(0) == EpochEnd(0, 1)
    assert partition.end_of_epoch(1) == EpochEnd(1, 1)
    assert partition.end_of_epoch(2) == EpochEnd(-1, -1)


async def test_offsets_by_time(cluster, autojump_clock):
    await cluster.create()
    partition = cluster[1].partition()

    async def listed(timestamp: int, **options) -> tuple[int, int, int]:
        return tuple(await partition.list_offset(timestamp, **options))

    nothing = (-1, -1, -1)
    assert [await listed(timestamp) for timestamp in (-1, -2, -3, -4, -5, -6, 0)] == [
        (-1, 0, 0),
        (-1, 0, 0),
        nothing,
        (-1, 0, 0),
        nothing,
        nothing,
        nothing,
    ]
    for time in (1000, 3000, 2000):
        await partition.append(build_batch(simple_records([(None, b"x")], time)), 1)
    await trio.sleep(2)
    cluster.network.cut("broker-1", "broker-2")
    await partition.append(build_batch(simple_records([(None, b"x")], 9000)), 1)
    assert await listed(-1) == (-1, 3, 0)
    assert await listed(1500) == (3000, 1, 0)
    assert await listed(9000) == nothing  # not committed
    assert await listed(9000, isolation=Bound.LOG_END) == (9000, 3, 0)
    assert await listed(-1, isolation=Bound.LOG_END) == (-1, 4, 0)
    await partition.delete_records(2)
    assert await listed(-2) == await listed(-4) == (-1, 2, 0)


async def test_only_leaders_answer_unless_asked_as_a_replica(cluster, autojump_clock):
    await half_replicated(cluster)
    follower = cluster[2].partition()
    for call in (lambda: follower.end_of_epoch(0), follower.low_watermark):
        with pytest.raises(KafkaError) as raised:
            call()
        assert code_of(raised) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    for call in (follower.fetch(0, 100), follower.list_offset(-1), follower.delete_records(0)):
        with pytest.raises(KafkaError) as raised:
            await call
        assert code_of(raised) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert offsets(await follower.fetch(0, 1000, Bound.LOG_END, leader_only=False)) == [0]


async def test_deleting_records(cluster, autojump_clock):
    await cluster.create(replicas=(1,))
    partition = cluster[1].partition()
    for value in (b"a", b"b", b"c"):
        await cluster[1].append(value)
    assert await partition.delete_records(1) == (1, 1)
    assert await partition.delete_records(0) == (0, 1)
    for offset in (4, -2):
        with pytest.raises(KafkaError) as raised:
            await partition.delete_records(offset)
        assert code_of(raised) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert await partition.delete_records(-1) == (3, 3)
    assert partition.log.log_start_offset == 3
    await cluster.create("compacted", replicas=(1,), cleanup_policy="compact")
    with pytest.raises(KafkaError) as raised:
        await cluster[1].partition("compacted").delete_records(0)
    assert code_of(raised) is ErrorCode.POLICY_VIOLATION


async def test_a_dead_replica_does_not_hold_the_low_watermark_back(cluster, autojump_clock):
    partition = await half_replicated(cluster)
    assert await partition.delete_records(1) == (1, 0)
    await cluster.fence(2)
    assert partition.low_watermark() == 1


async def test_waiters_are_woken_by_every_change(cluster, autojump_clock):
    await cluster.create()
    partition = cluster[1].partition()
    cluster.network.cut("broker-1", "broker-2")
    await trio.sleep(2)
    waiter = Wakeup()
    partition.watch(waiter)
    await cluster[1].append(b"a")
    assert waiter.count == 1  # the end
    await partition.fetch_for_follower(2, 0, 100, log_start_offset=0)
    assert waiter.count == 2  # the follower's log start became known
    await partition.fetch_for_follower(2, 0, 100, log_start_offset=0)
    assert waiter.count == 2
    await partition.fetch_for_follower(2, 1, 100, log_start_offset=0)
    assert waiter.count == 3  # the high watermark
    await partition.delete_records(1)
    assert waiter.count == 4
    await cluster.elect(2)
    assert waiter.count == 5
    partition.unwatch(waiter)
    partition.unwatch(waiter)
    await cluster.elect(1)
    assert waiter.count == 5


async def test_whether_a_read_would_bring_something_else(cluster, autojump_clock):
    partition = await half_replicated(cluster)

    async def follower_has(offset: int) -> None:
        await partition.fetch_for_follower(2, offset, 100, log_start_offset=0)

    async def transaction() -> None:
        records = simple_records([(None, b"in")], cluster[1].clock.wall_ms())
        batch = build_batch(records, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        guard = partition.begin_verification(7, 0, 0, supports_epoch_bump=True)
        await partition.append(batch, 1, origin=Origin.COORDINATOR, verification=guard)
        await follower_has(4)

    async def new_epoch() -> None:
        await cluster.elect(1)

    for change in (
        lambda: cluster[1].append(b"c"),
        lambda: follower_has(2),
        transaction,
        lambda: cluster[1].append(b"d"),
        lambda: follower_has(5),  # behind the open transaction
        lambda: partition.delete_records(1),
        new_epoch,
    ):
        read = await partition.fetch(2, 1000)
        assert partition.is_as_read(read)
        await change()
        assert not partition.is_as_read(read)
    read = await partition.fetch(2, 1000)
    partition.lose_log()
    assert not partition.is_as_read(read)
    read = await cluster[2].partition().fetch(0, 1000, Bound.LOG_END, leader_only=False)
    assert not cluster[2].partition().is_as_read(read)


async def test_followers_wake_their_waiters(cluster, autojump_clock):
    await cluster.create()
    waiter = Wakeup()
    cluster[2].partition().watch(waiter)
    await cluster[1].produce(b"a")
    before = waiter.count
    assert before >= 1
    await trio.sleep(2)
    assert waiter.count > before  # the high watermark came with a later fetch


async def test_waiting_for_several_appends(cluster, autojump_clock):
    await cluster.create("t")
    await cluster.create("alone", replicas=(1,))
    await trio.sleep(2)
    cluster.network.cut("broker-1", "broker-2")
    await trio.sleep(2)
    first, second = cluster[1].partition("t"), cluster[1].partition("alone")
    appends = [
        (first, await cluster[1].append(b"a", topic="t", acks=ALL)),
        (second, await cluster[1].append(b"b", topic="alone", acks=ALL)),
        (first, await cluster[1].append(b"c", topic="t", acks=ALL)),
    ]
    wait = ReplicationWait(appends)
    assert wait.outcomes == [None, ErrorCode.NONE, None]
    await first.fetch_for_follower(2, 1, 100)
    assert wait.outcomes == [ErrorCode.NONE, ErrorCode.NONE, None]
    assert (len(first._waiters), len(second._waiters)) == (1, 0)
    assert await wait.finish(1) == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
    assert not first._waiters
    another = ReplicationWait(appends)
    await first.fetch_for_follower(2, 2, 100)
    assert another.settled
    assert not first._waiters


async def test_giving_up_a_wait(cluster, autojump_clock, nursery):
    partition = await half_replicated(cluster)
    wait = ReplicationWait([(partition, await cluster[1].append(b"c", acks=ALL))])
    outcomes = []
    nursery.start_soon(lambda: _collect(wait, outcomes))
    await trio.testing.wait_all_tasks_blocked()
    wait.give_up()
    await trio.testing.wait_all_tasks_blocked()
    assert outcomes == [[ErrorCode.REQUEST_TIMED_OUT]]


async def _collect(wait: ReplicationWait, outcomes: list) -> None:
    outcomes.append(await wait.finish(60))


async def test_a_change_of_role_waits_for_appends_under_way(cluster, autojump_clock, nursery):
    """What was begun as the leader is in the log before anything that the new role does to it."""
    await cluster.create()
    partition = cluster[1].partition()
    partition.hold_role()
    done = trio.Event()

    async def elect() -> None:
        await cluster.elect(2)
        done.set()

    nursery.start_soon(elect)
    await trio.testing.wait_all_tasks_blocked()
    assert not done.is_set()
    with pytest.raises(KafkaError) as raised:
        await cluster[1].append(b"a")
    assert code_of(raised) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.release_role()
    await done.wait()
    assert (partition.is_leader, partition.leader) == (False, 2)


async def test_an_append_whose_caller_is_cancelled_is_there_for_all_others(cluster, autojump_clock, monkeypatch):
    await cluster.create(replicas=(1,), flush_messages="1")
    partition = cluster[1].partition()
    waiter = Wakeup()
    partition.watch(waiter)

    async def flush(log, **options) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(Log, "flush", flush)
    with trio.move_on_after(1):
        await cluster[1].append(b"a")
    assert partition.log.log_end_offset == partition.log.high_watermark == 1
    assert waiter.count == 1


@pytest.mark.plain
async def test_what_became_of_the_role_while_cold_data_were_read(cluster, autojump_clock, monkeypatch, nursery):
    """A fetch that was begun of one leader epoch, or by a replica that is none any more, tells nothing of progress."""
    await cluster.create()
    partition = cluster[1].partition()
    cluster.network.cut("broker-1", "broker-2")
    await cluster[1].append(b"a")
    warm = trio.Event()
    fetch = Log.fetch

    async def cold(*arguments, **options):
        await warm.wait()
        return await fetch(*arguments, **options)

    codes = []

    async def follow(epoch: int) -> None:
        with pytest.raises(KafkaError) as raised:
            await partition.fetch_for_follower(2, 1, 100, current_leader_epoch=epoch)
        codes.append(code_of(raised))

    monkeypatch.setattr(Log, "fetch", cold)
    nursery.start_soon(follow, 0)
    nursery.start_soon(follow, -1)
    await trio.testing.wait_all_tasks_blocked()
    await cluster.elect(1)
    await cluster.commit(PartitionChanged("t", 0, replace(cluster.state(), replicas=(1, 3), isr=(1,))))
    warm.set()
    await trio.sleep(1)
    assert sorted(codes) == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH]
    assert cluster.state().isr == (1,)


async def test_a_diverging_follower_has_not_come_so_far(cluster, autojump_clock):
    partition = await half_replicated(cluster)
    await cluster.elect(1)
    assert (await partition.fetch_for_follower(2, 2, 100, last_fetched_epoch=0)).diverging is None
    assert partition.log.high_watermark == 2
    await cluster[1].append(b"c")
    assert (await partition.fetch_for_follower(2, 3, 100, last_fetched_epoch=0)).diverging == EpochEnd(0, 2)
    assert partition.log.high_watermark == 2


async def test_states_that_are_older_are_ignored(cluster, autojump_clock):
    await cluster.create()
    old = cluster.state()
    await cluster.elect(2)
    partition = cluster[1].partition()
    assert not await partition.take_role(old)
    assert (partition.leader, partition.leader_epoch) == (2, 1)
