"""A transactional producer in few words, for the tests of the APIs that it uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kwire.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kwire.protocol.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from kwire.protocol.messages.end_txn import EndTxnRequest
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record
from kwire.security.authorizer import Operation
from tests.broker.scene import Scene

TRANSACTION, GROUP = 1, 0
BY_CLIENTS = 3
"""AddPartitionsToTxn by producers, the newest version."""


class Producer(NamedTuple):
    id: int
    epoch: int


async def coordinate(scene: Scene, *transactional_ids: str) -> None:
    """Makes __transaction_state, and waits until it is led and loaded."""
    await scene.call(FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=list(transactional_ids) or ["t"]), 6)
    await led(scene)


async def led(scene: Scene) -> None:
    """Waits until every partition of __transaction_state answers."""
    coordinator = scene.broker.coordinators.transactions.coordinator
    with trio.fail_after(60):
        while True:
            active = [shard for shard in coordinator.shards.values() if shard.active]
            if len(active) == coordinator.partitions:
                return
            await trio.sleep(0.01)


async def init(scene: Scene, transactional_id: str = "t", version: int = 5, **options: Any) -> tuple[int, Producer]:
    """The error code, and the producer to go on as."""
    request = InitProducerIdRequest(transactional_id=transactional_id, **({"transaction_timeout_ms": 60_000} | options))
    response = await scene.call(request, version)
    return response.error_code, Producer(response.producer_id, response.producer_epoch)


async def begin(scene: Scene, transactional_id: str = "t") -> Producer:
    """A producer that may write, once what it had open is aborted."""
    await coordinate(scene, transactional_id)
    with trio.fail_after(60):
        while True:
            code, producer = await init(scene, transactional_id)
            if code == ErrorCode.NONE:
                return producer
            assert code == ErrorCode.CONCURRENT_TRANSACTIONS, code
            await trio.sleep(0.01)


def partitions(*indexes: int, topic: str = "topic") -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))]


async def add(
    scene: Scene,
    producer: Producer,
    topics: list[AddPartitionsToTxnTopic],
    transactional_id: str = "t",
    version: int = BY_CLIENTS,
) -> dict[tuple[str, int], int]:
    """The codes of all partitions, asked for by a client."""
    response = await scene.call(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        ),
        version,
    )
    return _codes(response.results_by_topic_v3_and_below)


async def add_as_broker(scene: Scene, *transactions: AddPartitionsToTxnTransaction, version: int = 5) -> Any:
    """The top error code, and the codes of all partitions by transactional id."""
    response = await scene.call(AddPartitionsToTxnRequest(transactions=list(transactions)), version)
    return response.error_code, {
        result.transactional_id: _codes(result.topic_results) for result in response.results_by_transaction
    }


async def add_offsets(
    scene: Scene, producer: Producer, group: str = "group", transactional_id: str = "t", version: int = 4
) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        group_id=group,
    )
    code: int = (await scene.call(request, version)).error_code
    return code


async def end(
    scene: Scene, producer: Producer, *, commit: bool = True, transactional_id: str = "t", version: int = 5
) -> tuple[int, Producer]:
    """The error code, and the producer to go on as (of version 5)."""
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    response = await scene.call(request, version)
    return response.error_code, Producer(response.producer_id, response.producer_epoch)


async def describe(scene: Scene, transactional_id: str = "t") -> TransactionState:
    response = await scene.call(DescribeTransactionsRequest(transactional_ids=[transactional_id]))
    (state,) = response.transaction_states
    assert isinstance(state, TransactionState)
    return state


async def until(scene: Scene, state: str, transactional_id: str = "t") -> TransactionState:
    """Waits until the transactional id is in that state."""
    with trio.fail_after(600):
        while True:
            found = await describe(scene, transactional_id)
            if found.transaction_state == state:
                return found
            await trio.sleep(0.01)


async def write(
    scene: Scene,
    producer: Producer,
    *values: bytes,
    partition: int = 0,
    topic: str = "topic",
    transactional_id: str = "t",
) -> None:
    """Produces the records as part of the producer's transaction, beginning with sequence 0."""
    now = scene.broker.clock.wall_ms()
    blob = build_batch(
        [Record(offset, now, None, value, []) for offset, value in enumerate(values)],
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        transactional=True,
    )
    answered = await scene.produce_blob(topic, blob, partition, transactional_id=transactional_id)
    assert answered.error_code == 0, answered


def hold_markers(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Awaitable[None]]:
    """Holds back the markers of transactions until what it returns is called, and everybody waits for something."""
    markers = scene.broker.coordinators.transactions._markers
    write, released = markers.write, trio.Event()

    async def when_released(*arguments: Any) -> bool:
        await released.wait()
        return await write(*arguments)

    async def let_go() -> None:
        await trio.testing.wait_all_tasks_blocked()
        released.set()

    monkeypatch.setattr(markers, "write", when_released)
    return let_go


async def allow_all_but(scene: Scene, *denied: Operation) -> None:
    await scene.allow(*(operation for operation in Operation if operation not in denied))


def _codes(topics: list[Any]) -> dict[tuple[str, int], int]:
    return {
        (topic.name, result.partition_index): result.partition_error_code
        for topic in topics
        for result in topic.results_by_partition
    }
