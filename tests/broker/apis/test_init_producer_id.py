"""InitProducerId: ids that nobody had before, and requests that get none."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.cluster.leader_log import LeaderLog
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.security.authorizer import Operation
from tests.broker.apis import transactions
from tests.broker.scene import Scene, running

VERSIONS = range(6)


async def ask(scene: Scene, version: int = 5, **options: Any) -> tuple[int, int, int]:
    """(error code, producer id, producer epoch)"""
    defaults = {"transactional_id": None, "transaction_timeout_ms": 60_000}
    response = await scene.call(InitProducerIdRequest(**(defaults | options)), version)
    return response.error_code, response.producer_id, response.producer_epoch


async def test_each_id_is_new_with_epoch_0(autojump_clock) -> None:
    async with running() as scene:
        told = [await ask(scene, version, transaction_timeout_ms=-1) for version in VERSIONS]
        assert [(code, epoch) for code, _, epoch in told] == [(0, 0)] * len(VERSIONS)
        assert len({producer_id for _, producer_id, _ in told}) == len(VERSIONS)


@pytest.mark.parametrize("given", [(5, 0), (2**62, 32767), (-2, -2)])
async def test_who_has_an_id_gets_another(given: tuple[int, int], autojump_clock) -> None:
    async with running() as scene:
        code, producer_id, epoch = await ask(scene, producer_id=given[0], producer_epoch=given[1])
        assert (code, epoch) == (0, 0)
        assert producer_id not in (given[0], -1)


@pytest.mark.parametrize("given", [(5, -1), (-1, 0), (-2, -1), (-1, -2)])
@pytest.mark.parametrize("version", [3, 4, 5])
async def test_id_and_epoch_come_together(version: int, given: tuple[int, int], autojump_clock) -> None:
    async with running() as scene:
        told = await ask(scene, version, producer_id=given[0], producer_epoch=given[1])
        assert told == (ErrorCode.INVALID_REQUEST, -1, -1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_transactional_id_keeps_its_producer_id(version: int, autojump_clock) -> None:
    async with running() as scene:
        await transactions.coordinate(scene)
        (code, producer_id, epoch), again = [await ask(scene, version, transactional_id="it") for _ in range(2)]
        assert (code, epoch) == (0, 0)
        assert again == (0, producer_id, 1)


async def test_without_the_internal_topic_nobody_coordinates(autojump_clock) -> None:
    async with running() as scene:
        assert await ask(scene, transactional_id="it") == (ErrorCode.NOT_COORDINATOR, -1, -1)


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "code"),
    [
        ("", 60_000, ErrorCode.INVALID_REQUEST),
        ("it", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("it", 70_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
async def test_what_a_transactional_producer_must_not_ask_for(
    transactional_id: str, timeout_ms: int, code: ErrorCode, autojump_clock
) -> None:
    async with running({"transaction.max.timeout.ms": "70000"}) as scene:
        told = await ask(scene, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        assert told == (code, -1, -1)


@pytest.mark.parametrize("refusal", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE])
async def test_what_the_coordinators_log_does_not_take(
    refusal: ErrorCode, autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as scene:
        await transactions.coordinate(scene)

        async def refuse(*arguments: Any, **options: Any) -> int:
            raise KafkaError(refusal)

        monkeypatch.setattr(LeaderLog, "append", refuse)
        assert await ask(scene, transactional_id="it") == (ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1)


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_a_fenced_producer_is_told_as_its_version_understands(version: int, autojump_clock) -> None:
    async with running() as scene:
        first = await transactions.begin(scene)
        await transactions.begin(scene)
        code, _ = await transactions.init(scene, version=version, producer_id=first.id, producer_epoch=first.epoch)
        assert code == (ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH)


async def test_another_instance_waits_for_the_abort_of_what_is_open(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("topic")
        first = await transactions.begin(scene)
        await transactions.add(scene, first, transactions.partitions(0))
        code, _ = await transactions.init(scene)
        assert code == ErrorCode.CONCURRENT_TRANSACTIONS
        second = await transactions.begin(scene)
        assert (second.id, second.epoch) == (first.id, 2)
        assert (await transactions.end(scene, first))[0] == ErrorCode.PRODUCER_FENCED


async def test_who_may_not_have_an_id(autojump_clock) -> None:
    async with running() as scene:
        await scene.allow(Operation.DESCRIBE)
        assert (await ask(scene))[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (await ask(scene, transactional_id="it"))[0] == refused
