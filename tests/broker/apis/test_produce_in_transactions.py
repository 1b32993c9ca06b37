"""Transactional batches are taken where the partition belongs to the transaction (KIP-890)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from kwire.broker import producing
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from tests.broker.scene import Scene, running

from .transactions import Producer, add, begin, describe, end, hold_markers, init, partitions, until

pytestmark = pytest.mark.usefixtures("either_way")

VERIFIES, KNOWS_ABORTABLE, ADDS = 10, 11, 12
NOT_ADDED = "Partition was not added to the transaction"


def batch(producer: Producer, sequence: int = 0, count: int = 1) -> bytes:
    return build_batch(
        [Record(offset, 1_700_000_000_000, b"key", b"value", []) for offset in range(count)],
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=True,
    )


async def produce(scene: Scene, version: int, *blobs: bytes, transactional_id: str = "t") -> list[Any]:
    """The answers for partitions 0, 1, … of the topic."""
    response = await scene.call(
        ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name="topic",
                    partition_data=[
                        PartitionProduceData(index=index, records=blob) for index, blob in enumerate(blobs)
                    ],
                )
            ],
        ),
        version,
    )
    return list(response.responses[0].partition_responses)


async def codes(scene: Scene, version: int, *blobs: bytes, transactional_id: str = "t") -> list[int]:
    answers = await produce(scene, version, *blobs, transactional_id=transactional_id)
    return [answer.error_code for answer in answers]


async def test_from_version_12_on_the_broker_adds_the_partitions(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 2)
        producer = await begin(scene)
        assert await codes(scene, ADDS, batch(producer), batch(producer)) == [0, 0]
        assert [topic.partitions for topic in (await describe(scene)).topics] == [[0, 1]]
        assert await codes(scene, ADDS, batch(producer, 1)) == [0]
        assert scene.log("topic").last_stable_offset == 0
        code, following = await end(scene, producer)
        assert code == 0
        assert following == Producer(producer.id, producer.epoch + 1)
        await until(scene, "CompleteCommit")
        assert scene.log("topic").last_stable_offset == 3


async def test_before_that_the_client_must_have_added_them(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 2)
        producer = await begin(scene)
        await add(scene, producer, partitions(0))
        taken, refused = await produce(scene, KNOWS_ABORTABLE, batch(producer), batch(producer))
        assert (taken.error_code, taken.base_offset) == (0, 0)
        assert (refused.error_code, refused.error_message) == (ErrorCode.TRANSACTION_ABORTABLE, None)
        _, refused = await produce(scene, VERIFIES, batch(producer, 1), batch(producer))
        assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_TXN_STATE, NOT_ADDED)
        assert (refused.base_offset, refused.log_start_offset) == (-1, -1)
        assert scene.log("topic").log_end_offset == 2
        assert scene.log("topic", 1).log_end_offset == 0


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
async def test_who_is_fenced_writes_nothing(version: int, autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        fenced = await begin(scene)
        await init(scene)
        assert await codes(scene, version, batch(fenced)) == [ErrorCode.INVALID_PRODUCER_EPOCH]
        assert scene.log("topic").log_end_offset == 0


async def test_an_older_epoch_is_refused_before_the_coordinator_is_asked(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        assert await codes(scene, ADDS, batch(producer)) == [0]
        _, following = await end(scene, producer)
        await until(scene, "CompleteCommit")
        assert await codes(scene, ADDS, batch(producer, 1)) == [ErrorCode.INVALID_PRODUCER_EPOCH]
        assert (await describe(scene)).transaction_state == "CompleteCommit"
        assert await codes(scene, ADDS, batch(following)) == [0]


async def test_a_transaction_begins_with_its_first_batch(autojump_clock) -> None:
    """A later one that overtook it waits: written first, it would bar the first for good."""
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        assert await codes(scene, ADDS, batch(producer, 1)) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert await codes(scene, ADDS, batch(producer, 0)) == [0]
        assert await codes(scene, ADDS, batch(producer, 1)) == [0]


async def test_two_producers_in_one_request(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic", 2)
        producer = await begin(scene)
        other = Producer(producer.id + 1, 0)
        assert await codes(scene, ADDS, batch(producer), batch(other)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


async def test_an_unknown_transactional_id(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        for version in (VERIFIES, ADDS):
            told = await codes(scene, version, batch(producer), transactional_id="another")
            assert told == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]


async def test_a_marker_between_the_question_and_the_append_voids_the_answer(autojump_clock) -> None:
    """The transaction that the coordinator spoke of is over by then: the batch would hang."""
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        await add(scene, producer, partitions(0))
        transactions = scene.broker.coordinators.transactions
        ask = transactions.add_partitions

        async def slowly(*arguments: Any, **options: Any) -> Any:
            told = await ask(*arguments, **options)
            await end(scene, producer, commit=False, version=4)
            await until(scene, "CompleteAbort")
            return told

        transactions.add_partitions = slowly  # type: ignore[method-assign]
        other = await scene.another_connection()
        scene.connection, mine = other, scene.connection
        response = await mine.call(
            ProduceRequest(
                transactional_id="t",
                acks=-1,
                timeout_ms=1000,
                topic_data=[
                    TopicProduceData(
                        name="topic", partition_data=[PartitionProduceData(index=0, records=batch(producer))]
                    )
                ],
            ),
            VERIFIES,
        )
        mine.close()
        (told,) = response.responses[0].partition_responses
        assert told.error_code == ErrorCode.INVALID_TXN_STATE
        assert told.error_message == "Record was not part of an ongoing transaction"
        assert scene.log("topic").last_stable_offset == scene.log("topic").log_end_offset


async def test_without_verification_old_clients_are_believed(autojump_clock) -> None:
    async with running({"transaction.partition.verification.enable": "false"}) as scene:
        await scene.create("topic")
        producer = await begin(scene)
        assert await codes(scene, VERIFIES, batch(producer)) == [0]
        assert not (await describe(scene)).topics


async def test_a_transaction_follows_while_the_markers_of_the_one_before_are_written(
    autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as scene:
        await scene.create("topic")
        producer = await begin(scene)
        assert await codes(scene, ADDS, batch(producer)) == [0]
        let_go = hold_markers(scene, monkeypatch)
        _, following = await end(scene, producer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(let_go)
            assert await codes(scene, ADDS, batch(following)) == [0]
        assert scene.log("topic").last_stable_offset == 2


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
async def test_what_goes_on_in_a_transaction_is_known(
    version: int, monkeypatch: pytest.MonkeyPatch, autojump_clock
) -> None:
    """By what was sent before; what begins one, or comes when it is over, is not."""
    handled: list[int] = []
    verify = producing.verify_batches

    async def counted(*arguments: Any) -> Any:
        handled.append(len(arguments[-1]))
        return await verify(*arguments)

    monkeypatch.setattr(producing, "verify_batches", counted)
    async with running() as scene:
        await scene.create("topic", 2)
        producer = await begin(scene)
        if version == VERIFIES:
            await add(scene, producer, partitions(0, 1))
        for sequence in range(4):
            assert await codes(scene, version, batch(producer, sequence), batch(producer, sequence)) == [0, 0]
        assert handled[0] == 2
        handled.clear()
        assert await codes(scene, version, batch(producer, 4), batch(producer, 4)) == [0, 0]
        gap = [0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert await codes(scene, version, batch(producer, 5), batch(producer, 50)) == gap
        assert not handled
        other = Producer(producer.id + 1, 0)
        assert (
            await codes(scene, version, batch(producer, 6), batch(other)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
        )
        assert [scene.log("topic", index).log_end_offset for index in (0, 1)] == [6, 5]
        code, _ = await end(scene, producer)
        assert code == 0
        await until(scene, "CompleteCommit")
        handled.clear()
        late = await codes(scene, version, batch(producer, 6), batch(producer, 5))
        assert 0 not in late
        assert handled == [2]
        assert [scene.log("topic", index).log_end_offset for index in (0, 1)] == [7, 6]  # and the markers
