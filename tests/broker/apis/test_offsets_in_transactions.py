"""TxnOffsetCommit is taken where the group's partition belongs to the transaction (KIP-890)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.find_coordinator import FindCoordinatorRequest
from kwire.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kwire.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kwire.protocol.types import TopicPartition
from tests.broker.scene import Scene, running

from .transactions import GROUP, Producer, add_offsets, begin, end, hold_markers, init, until

VERIFIES, KNOWS_ABORTABLE, ADDS = 3, 4, 5
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def prepare(scene: Scene) -> Producer:
    """A topic, a group's coordinator that is loaded, and a producer."""
    await scene.create("topic")
    await scene.call(FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["group"]), 6)
    groups = scene.broker.coordinators.groups
    with trio.fail_after(60):
        while True:
            shard = groups.shards.get(groups.partition_of("group"))
            if shard is not None and shard.active:
                break
            await trio.sleep(0.01)
    return await begin(scene)


async def commit(scene: Scene, producer: Producer, version: int, offset: int = 5, transactional_id: str = "t") -> int:
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id="group",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name="topic",
                partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)],
            )
        ],
    )
    response = await scene.call(request, version)
    code: int = response.topics[0].partitions[0].error_code
    return code


async def committed(scene: Scene) -> int:
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id="group", topics=[OffsetFetchRequestTopics(name="topic", partition_indexes=[0])]
            )
        ]
    )
    response = await scene.call(request, 9)
    offset: int = response.groups[0].topics[0].partitions[0].committed_offset
    return offset


async def test_from_version_5_on_the_broker_adds_the_groups_partition(autojump_clock) -> None:
    async with running() as scene:
        producer = await prepare(scene)
        assert await commit(scene, producer, ADDS, 5) == 0
        assert await commit(scene, producer, ADDS, 6) == 0
        assert await committed(scene) == -1
        assert (await end(scene, producer))[0] == 0
        await until(scene, "CompleteCommit")
        assert await committed(scene) == 6


async def test_before_that_the_client_must_have_added_it(autojump_clock) -> None:
    async with running() as scene:
        producer = await prepare(scene)
        assert await commit(scene, producer, VERIFIES) == ErrorCode.INVALID_TXN_STATE
        assert await commit(scene, producer, KNOWS_ABORTABLE) == ErrorCode.TRANSACTION_ABORTABLE
        assert await add_offsets(scene, producer, version=3) == 0
        assert await commit(scene, producer, VERIFIES) == 0
        assert (await end(scene, producer, version=4))[0] == 0
        await until(scene, "CompleteCommit")
        assert await committed(scene) == 5


@pytest.mark.parametrize("version", [VERIFIES, ADDS])
async def test_who_is_fenced_stores_nothing(version: int, autojump_clock) -> None:
    async with running() as scene:
        producer = await prepare(scene)
        await init(scene)
        assert await commit(scene, producer, version) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await commit(scene, producer, version, transactional_id="x") == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(
    ("version", "told"), [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (2, LOADING), (VERIFIES, LOADING), (ADDS, LOADING)]
)
async def test_without_an_answer_of_the_transactions_coordinator_it_is_to_be_tried_again(
    version: int, told: ErrorCode, autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unanswered(*arguments: Any, verify_only: bool) -> dict[TopicPartition, ErrorCode]:
        return dict.fromkeys(arguments[3], ErrorCode.NETWORK_EXCEPTION)

    async with running() as scene:
        producer = await prepare(scene)
        monkeypatch.setattr(scene.broker.coordinators.transactions, "add_partitions", unanswered)
        assert await commit(scene, producer, version) == told


async def test_a_transaction_follows_while_the_markers_of_the_one_before_are_written(
    autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as scene:
        producer = await prepare(scene)
        assert await commit(scene, producer, ADDS, 5) == 0
        let_go = hold_markers(scene, monkeypatch)
        _, following = await end(scene, producer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(let_go)
            assert await commit(scene, following, ADDS, 6) == 0
        assert await committed(scene) == 5
