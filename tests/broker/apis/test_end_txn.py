"""EndTxn: what consumers see of committed and aborted records, and what the producer is told."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from kwire.cluster.leader_log import LeaderLog
from kwire.cluster.replica import Bound
from kwire.metadata.names import TRANSACTION_STATE
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kwire.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.records.control import read_end_txn_marker
from kwire.protocol.records.header import iter_batches
from kwire.security.authorizer import Operation
from tests.broker.apis import transactions
from tests.broker.apis.transactions import Producer, add, add_offsets, begin, describe, end, partitions, until, write
from tests.broker.scene import Scene, running


async def stable(scene: Scene, partition: int = 0) -> tuple[int, int, list[int]]:
    """Last stable offset, log end offset, and where aborted transactions begin."""
    found = scene.broker.replicas.partition("topic", partition)
    read = await found.fetch(0, 1 << 20, Bound.LAST_STABLE_OFFSET)
    aborted = read.aborted or []
    return read.last_stable_offset, read.log_end_offset, [transaction.first_offset for transaction in aborted]


async def markers(scene: Scene, partition: int = 0, topic: str = "topic") -> list[tuple[Producer, bool]]:
    """The markers of a partition, in order: whose, and whether they commit."""
    found = scene.broker.replicas.partition(topic, partition)
    read = await found.fetch(0, 1 << 20, Bound.LOG_END)
    assert read.slice is not None
    told = []
    for header, batch in iter_batches(read.slice.read()):
        marker = read_end_txn_marker(batch) if header.control else None
        if marker is not None:
            told.append((Producer(header.producer_id, header.producer_epoch), marker.commit))
    return told


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("commit", [True, False])
async def test_the_end_comes_to_all_partitions(commit: bool, version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 2)
        producer = await begin(scene)
        await add(scene, producer, partitions(0, 1))
        for partition in (0, 1):
            await write(scene, producer, b"one", b"two", partition=partition)
            assert await stable(scene, partition) == (0, 2, [])
        code, goes_on_as = await end(scene, producer, commit=commit, version=version)
        after = Producer(producer.id, 1) if version == 5 else producer
        assert (code, goes_on_as) == (0, after if version == 5 else (-1, -1))
        state = await until(scene, "CompleteCommit" if commit else "CompleteAbort")
        assert ((state.producer_id, state.producer_epoch), state.topics) == (after, [])
        for partition in (0, 1):
            assert await stable(scene, partition) == (3, 3, [] if commit else [0])
            assert await markers(scene, partition) == [(after, commit)]


async def test_the_markers_of_a_group_go_through_its_coordinator(autojump_clock) -> None:
    async with running({"offsets.topic.num.partitions": "1"}) as scene:
        await scene.call(FindCoordinatorRequest(coordinator_keys=["group"]), 6)
        producer = await begin(scene)
        assert await add_offsets(scene, producer) == 0
        assert [(topic.topic, topic.partitions) for topic in (await describe(scene)).topics] == [
            ("__consumer_offsets", [0])
        ]
        _, after = await end(scene, producer)
        await until(scene, "CompleteCommit")
        assert await markers(scene, topic="__consumer_offsets") == [(after, True)]


async def test_partitions_that_are_deleted_hold_up_nothing(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        await add(scene, producer, partitions(0))
        await scene.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="topic")], timeout_ms=1000))
        assert (await end(scene, producer))[0] == 0
        await until(scene, "CompleteCommit")


@pytest.mark.parametrize("version", range(6))
async def test_a_fenced_producer_is_told_as_its_version_understands(version: int, autojump_clock) -> None:
    async with running() as scene:
        first = await begin(scene)
        await begin(scene)
        expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await end(scene, first, version=version) == (expected, (-1, -1))


async def test_who_may_end(autojump_clock) -> None:
    async with running() as scene:
        producer = await begin(scene)
        assert (await end(scene, producer, transactional_id="other"))[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert (await end(scene, producer, transactional_id=""))[0] == ErrorCode.INVALID_REQUEST
        assert (await end(scene, producer))[0] == ErrorCode.INVALID_TXN_STATE
        await transactions.allow_all_but(scene, Operation.WRITE)
        assert (await end(scene, producer))[0] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_a_transaction_that_is_open_for_too_long_is_aborted(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        await transactions.coordinate(scene)
        code, producer = await transactions.init(scene, transaction_timeout_ms=1000)
        assert code == 0
        await add(scene, producer, partitions(0))
        await write(scene, producer, b"one")
        before = trio.current_time()
        await until(scene, "CompleteAbort")
        assert 1 <= trio.current_time() - before <= 12
        assert await stable(scene) == (2, 2, [0])
        assert (await end(scene, producer))[0] == ErrorCode.INVALID_TXN_STATE
        assert await add(scene, producer, partitions(0)) == {("topic", 0): ErrorCode.PRODUCER_FENCED}


async def test_an_unused_transactional_id_is_forgotten(autojump_clock) -> None:
    async with running({"transactional.id.expiration.ms": "5000"}) as scene:
        await begin(scene)
        await trio.sleep(3601)
        scene.connection = await scene.another_connection()  # the other one was idle for too long
        assert (await describe(scene)).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def test_open_and_decided_transactions_survive_a_restart(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as scene:
        files = scene.files
        await scene.create("topic", 2)
        producer = await begin(scene)
        await add(scene, producer, partitions(0))
        await write(scene, producer, b"one")
        decided = await begin(scene, "decided")
        await add(scene, decided, partitions(1), "decided")
        await write(scene, decided, b"one", partition=1, transactional_id="decided")
        # The broker stops when the decision is written, and before any marker is.
        monkeypatch.setattr(scene.broker.coordinators.transactions, "finish", lambda shard, due: None)
        assert (await end(scene, decided, transactional_id="decided"))[0] == 0
        assert (await describe(scene, "decided")).transaction_state == "PrepareCommit"
    async with running(files=files) as scene:
        await transactions.led(scene)
        assert (await until(scene, "CompleteCommit", "decided")).producer_epoch == 1
        assert await stable(scene, 1) == (2, 2, [])
        assert (await describe(scene)).transaction_state == "Ongoing"
        assert await stable(scene, 0) == (0, 1, [])
        assert (await end(scene, producer, commit=False))[0] == 0
        await until(scene, "CompleteAbort")
        assert await stable(scene, 0) == (2, 2, [0])


async def test_describe_producers_tells_of_what_is_open(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        await add(scene, producer, partitions(0))
        await write(scene, producer, b"one")
        request = DescribeProducersRequest(topics=[TopicRequest(name="topic", partition_indexes=[0])])
        (told,) = (await scene.call(request)).topics[0].partitions[0].active_producers
        assert (told.producer_id, told.current_txn_start_offset, told.coordinator_epoch) == (producer.id, 0, -1)
        await end(scene, producer)
        await until(scene, "CompleteCommit")
        (told,) = (await scene.call(request)).topics[0].partitions[0].active_producers
        assert (told.producer_epoch, told.current_txn_start_offset, told.coordinator_epoch) == (1, -1, 0)


@pytest.mark.parametrize("commit", [True, False])
async def test_a_transaction_ends_though_its_coordinators_volume_had_no_room(
    commit: bool, autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running({"transaction.state.log.num.partitions": "1"}) as scene:
        await scene.create("topic")
        producer = await begin(scene)
        await add(scene, producer, partitions(0))
        await write(scene, producer, b"one")
        append = LeaderLog.append
        refused = []

        async def full(log: LeaderLog, *arguments: Any, **options: Any) -> Any:
            if log._partition.topic == TRANSACTION_STATE and await stable(scene) == (2, 2, [] if commit else [0]):
                refused.append(trio.current_time())
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")
            return await append(log, *arguments, **options)

        monkeypatch.setattr(LeaderLog, "append", full)
        assert (await end(scene, producer, commit=commit))[0] == 0
        await trio.sleep(5)
        assert refused
        monkeypatch.undo()
        await until(scene, "CompleteCommit" if commit else "CompleteAbort")
