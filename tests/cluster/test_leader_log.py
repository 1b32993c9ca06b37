"""The log that a coordinator keeps its state in: appends that count when committed, reading back, transactions."""

import pytest
import trio

from kwire.cluster.leader_log import LeaderLog
from kwire.cluster.replica import Bound
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import iter_records
from tests.records import simple_records

from .nodes import Cluster


@pytest.fixture
async def cluster(nursery):
    cluster = Cluster(nursery)
    await cluster.start(1, 2)
    return cluster


def log_of(cluster, broker: int = 1) -> LeaderLog:
    partition = cluster[broker].partition()
    return LeaderLog(partition, partition.log)


def batch(*values: bytes, **producer) -> bytes:
    return build_batch(simple_records([(b"key", value) for value in values], 1_700_000_000_000), **producer)


async def test_an_append_counts_when_the_high_watermark_has_passed_it(cluster, autojump_clock):
    await cluster.create(cleanup_policy="compact")
    log = log_of(cluster)
    cluster.network.cut("broker-1", "broker-2")
    await trio.sleep(2)
    seen = []
    log.on_progress(lambda: seen.append(log.committed))
    assert await log.append(batch(b"a", b"b")) == log.end == 2
    assert (log.start, log.committed) == (0, 0)
    cluster.network.heal("broker-1", "broker-2")
    await trio.sleep(2)
    assert seen[-1] == log.committed == 2
    log.close()
    log.close()
    calls = len(seen)
    await log.append(batch(b"c"))
    await trio.sleep(2)
    assert (log.committed, len(seen)) == (3, calls)


async def test_a_log_that_is_closed_meanwhile_is_not_called(cluster, autojump_clock):
    """Whoever is called first closes the other: both were to be called for the same change."""
    await cluster.create(replicas=(1,))
    first, second = log_of(cluster), log_of(cluster)
    calls = []
    first.on_progress(second.close)
    second.on_progress(lambda: calls.append(1))
    await first.append(batch(b"a"))
    assert calls == []


async def test_it_is_of_one_leader_epoch(cluster, autojump_clock):
    await cluster.create()
    log = log_of(cluster)
    for leader in (1, 2):
        await cluster.elect(leader)
        with pytest.raises(KafkaError) as raised:
            await log.append(batch(b"a"))
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster[1].values() == []


async def test_what_acks_all_cannot_keep_is_refused(cluster, autojump_clock):
    await cluster.create(isr=(1,), min_insync_replicas="2")
    cluster.network.cut("broker-1", "broker-2")
    with pytest.raises(KafkaError) as raised:
        await log_of(cluster).append(batch(b"a"))
    assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS


async def test_reading_everything_back(cluster, autojump_clock):
    await cluster.create(replicas=(1,), segment_bytes="1048576", max_message_bytes="300000")
    log = log_of(cluster)
    assert log.max_batch_bytes == 300_000
    values = [bytes([number]) * size for number, size in enumerate([1, 200_000, 5, 100_000, 250_000, 250_000, 250_000])]
    for value in values:
        await log.append(batch(value))
    assert len(cluster[1].partition().log.segments) > 1
    for piece in (1, 1000, 150_000, 10_000_000):
        found = []
        upto = log.start
        while data := await log.read(upto, piece):
            assert len(data) <= max(piece, 260_000)
            for header, records in iter_batches(data):
                found += [record.value for record in iter_records(records)]
                upto = header.next_offset
        assert found == values
        assert upto == log.end


async def test_reading_goes_to_a_worker_thread(cluster, autojump_clock):
    await cluster.create(replicas=(1,))
    log = log_of(cluster)
    await log.append(batch(b"a"))
    services = cluster[1].partition().log.services
    inline, ran = services.executor, []

    class Noting:
        async def run(self, function, *arguments):
            ran.append(function.__name__)
            return await inline.run(function, *arguments)

    services.executor = Noting()
    assert await log.read(0, 1000)
    assert ran == ["read"]


async def test_transactions(cluster, autojump_clock):
    """Open ones hold the last stable offset back, on the follower too; ended ones do not; aborted ones are told."""
    await cluster.create()
    log = log_of(cluster)
    partition = cluster[1].partition()

    def stable() -> list[int]:
        return [cluster[broker].partition().log.last_stable_offset for broker in (1, 2)]

    for producer, values in (7, [b"a", b"b"]), (8, [b"c"]):
        guard = partition.begin_verification(producer, -1, 0, supports_epoch_bump=True)
        data = batch(*values, producer_id=producer, producer_epoch=0, transactional=True)
        with pytest.raises(KafkaError) as raised:
            await log.append(data)
        assert raised.value.code is ErrorCode.INVALID_TXN_STATE
        await log.append(data, verification=guard)
    await trio.sleep(2)
    assert (log.committed, stable()) == (3, [0, 0])
    await log.append(_marker(7, 1, commit=False), transaction_version=2)
    await trio.sleep(2)
    assert stable() == [2, 2]
    read = await partition.fetch(0, 10_000, Bound.LAST_STABLE_OFFSET)
    assert [(txn.producer_id, txn.first_offset) for txn in read.aborted] == [(7, 0)]
    await log.append(_marker(8, 1, commit=True), transaction_version=2)
    await trio.sleep(2)
    assert stable() == [5, 5]


async def test_a_marker_is_checked_under_its_transaction_version(cluster, autojump_clock):
    """From transaction.version 2 on each transaction has an epoch of its own, which its marker bumps (KIP-890)."""
    await cluster.create(replicas=(1,))
    log = log_of(cluster)
    guard = cluster[1].partition().begin_verification(7, -1, 3, supports_epoch_bump=False)
    await log.append(batch(b"a", producer_id=7, producer_epoch=3, transactional=True), verification=guard)
    with pytest.raises(KafkaError) as raised:
        await log.append(_marker(7, 3, commit=True), transaction_version=2)
    assert raised.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await log.append(_marker(7, 3, commit=True), transaction_version=1) == 2
    assert cluster[1].partition().log.last_stable_offset == 2


async def test_the_marker_of_a_coordinator_that_was_replaced_is_fenced(cluster, autojump_clock):
    await cluster.create(replicas=(1,))
    log = log_of(cluster)
    await log.append(_marker(7, 1, commit=True, coordinator_epoch=5))
    with pytest.raises(KafkaError) as raised:
        await log.append(_marker(7, 1, commit=True, coordinator_epoch=4))
    assert raised.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def _marker(producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int = 0) -> bytes:
    return build_end_txn_marker(
        producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch, timestamp=1_700_000_000_000
    )
