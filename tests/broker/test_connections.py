"""Which connections are closed for being idle (`connections.max.idle.ms`), and which are not."""

from __future__ import annotations

from struct import pack

import pytest
import trio

from kwire.ports.transport import Stream
from kwire.protocol.api_keys import ApiKey
from tests.broker.scene import HOST, PORT, Scene, running

IDLE_SECONDS = 10.0
IDLE = {"connections.max.idle.ms": "10000"}
ASK = pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, -1)
MORE_THAN_THE_NETWORK_HOLDS = 4000
"""Answers, of some hundred bytes each."""


async def connected(scene: Scene) -> Stream:
    return await scene.network.transport("client").connect(HOST, PORT)


@pytest.mark.parametrize(("limit", "stays_open"), [("10000", False), ("-1", True), ("-2000", True)])
async def test_a_negative_limit_is_none(limit: str, stays_open: bool, autojump_clock) -> None:
    async with running({"connections.max.idle.ms": limit}) as scene:
        await trio.sleep(100)
        assert (len(scene.broker.connections) == 1) is stays_open


async def test_a_client_that_takes_nothing_of_its_answers_is_idle(autojump_clock) -> None:
    async with running(IDLE) as scene:
        stream = await connected(scene)
        await stream.send([ASK * MORE_THAN_THE_NETWORK_HOLDS])
        await trio.sleep(IDLE_SECONDS * 0.9)
        assert len(scene.broker.connections) == 2
        await trio.sleep(IDLE_SECONDS * 1.5)
        assert len(scene.broker.connections) == 0


async def test_a_client_that_takes_its_answers_slowly_is_not_idle(autojump_clock) -> None:
    async with running(IDLE) as scene:
        stream = await connected(scene)
        await stream.send([ASK * MORE_THAN_THE_NETWORK_HOLDS])
        for _ in range(20):
            await trio.sleep(IDLE_SECONDS / 2)
            assert await stream.receive(1000)
        assert len(scene.broker.connections) == 1


async def test_a_request_under_way_is_not_idle(autojump_clock) -> None:
    async with running(IDLE) as scene:
        await scene.create("t")
        stream = await connected(scene)
        partition = pack(">iiqi", 1, 0, 0, 1000)
        body = pack(">iiiibih1s", -1, 60_000, 1, 1000, 0, 1, 1, b"t") + partition
        await stream.send([pack(">ihhih", 10 + len(body), ApiKey.FETCH, 4, 1, -1) + body])
        with trio.fail_after(61):
            assert await stream.receive(1000)
