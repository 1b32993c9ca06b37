"""InitProducerId: ids that nobody had before, and requests that get none."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.security.authorizer import Operation
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


@pytest.mark.parametrize("transactional_id", ["", "it"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_there_are_no_transactions(version: int, transactional_id: str, autojump_clock) -> None:
    async with running() as scene:
        told = await ask(scene, version, transactional_id=transactional_id)
        assert told == (ErrorCode.INVALID_REQUEST, -1, -1)


async def test_who_may_not_have_an_id(autojump_clock) -> None:
    async with running() as scene:
        await scene.allow(Operation.DESCRIBE)
        assert (await ask(scene))[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (await ask(scene, transactional_id="it"))[0] == refused
