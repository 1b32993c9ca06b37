"""ListTransactions: filters, and what one may see."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from kwire.coordinator.records import TopicRecords
from kwire.coordinator.runtime.shard import Shard
from kwire.ports.clock import TrioClock
from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.list_transactions import ListTransactionsRequest
from kwire.security.authorizer import Operation
from tests.broker.apis.test_many_groups import turns_of_another
from tests.broker.apis.transactions import Producer, add, begin, coordinate, partitions
from tests.broker.scene import Scene, running


async def names(scene: Scene, version: int = 2, **filters: Any) -> list[str]:
    response = await scene.call(ListTransactionsRequest(**filters), version)
    assert response.error_code == 0
    return sorted(state.transactional_id for state in response.transaction_states)


async def some(scene: Scene) -> Producer:
    """One that is open, and two that are not."""
    await scene.create("topic")
    await begin(scene, "empty-1")
    await begin(scene, "empty-2")
    producer = await begin(scene, "open")
    await add(scene, producer, partitions(0), "open")
    return producer


@pytest.mark.parametrize("version", range(3))
async def test_all_and_those_of_states_and_producers(version: int, autojump_clock) -> None:
    async with running() as scene:
        producer = await some(scene)
        assert await names(scene, version) == ["empty-1", "empty-2", "open"]
        assert await names(scene, version, state_filters=["Ongoing", "CompleteAbort"]) == ["open"]
        assert await names(scene, version, producer_id_filters=[producer.id, 12345]) == ["open"]
        response = await scene.call(ListTransactionsRequest(state_filters=["ongoing", "Ongoing", "ongoing"]), version)
        assert response.unknown_state_filters == ["ongoing"]
        assert [
            (state.transactional_id, state.producer_id, state.transaction_state)
            for state in response.transaction_states
        ] == [("open", producer.id, "Ongoing")]
        assert await names(scene, version, state_filters=["ongoing"]) == []


@pytest.mark.parametrize("version", [1, 2])
async def test_those_that_are_open_for_long(version: int, autojump_clock) -> None:
    async with running() as scene:
        await some(scene)
        assert await names(scene, version, duration_filter=1000, state_filters=["Ongoing"]) == []
        await trio.sleep(2)
        assert await names(scene, version, duration_filter=1000, state_filters=["Ongoing"]) == ["open"]


async def test_those_whose_id_matches(autojump_clock) -> None:
    async with running() as scene:
        await some(scene)
        assert await names(scene, transactional_id_pattern="empty-.") == ["empty-1", "empty-2"]
        assert await names(scene, transactional_id_pattern="empty") == []
        assert await names(scene, transactional_id_pattern="") == ["empty-1", "empty-2", "open"]
        response = await scene.call(ListTransactionsRequest(transactional_id_pattern="(?=open)"))
        assert (response.error_code, response.transaction_states) == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])


async def test_what_one_may_see(autojump_clock) -> None:
    async with running() as scene:
        await some(scene)
        await scene.allow(Operation.DESCRIBE, names=["open"])
        assert await names(scene) == ["open"]


async def test_without_transactions_there_are_none(autojump_clock) -> None:
    async with running() as scene:
        assert await names(scene) == []


async def test_what_cannot_be_coordinated_is_left_out(autojump_clock) -> None:
    async with running() as scene:
        await some(scene)
        transactions = scene.broker.coordinators.transactions
        transactions.coordinator.shard_of("open").close()
        assert "open" not in await names(scene)


async def test_others_have_their_turn(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running({"transaction.state.log.num.partitions": "1"}) as scene:
        for number in range(20):
            await begin(scene, f"{number}")
        at_once = await turns_of_another(lambda: names(scene, transactional_id_pattern="none"))
        monkeypatch.setattr("kwire.ports.turns.TURN_SECONDS", 0.0)
        assert await turns_of_another(lambda: names(scene, transactional_id_pattern="none")) >= at_once + 20


async def test_nothing_is_told_while_something_is_loaded(autojump_clock) -> None:
    async with running({"transaction.state.log.num.partitions": "1"}) as scene:
        await coordinate(scene)
        coordinator = scene.broker.coordinators.transactions.coordinator
        coordinator.shards[0] = Shard(
            coordinator.shards[0].log, coordinator.shards[0].machine, TopicRecords({}), TrioClock()
        )
        response = await scene.call(ListTransactionsRequest())
        assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
