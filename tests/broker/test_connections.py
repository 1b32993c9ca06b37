"""How many connections there may be, and which are closed for being idle (`connections.max.idle.ms`)."""

from __future__ import annotations

from struct import pack

import pytest
import trio

from kwire.broker.connections import Connections
from kwire.broker.limited_log import INTERVAL_SECONDS, MOST
from kwire.config.broker import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.ports.clock import TrioClock
from kwire.ports.memory_transport import MemoryTransport
from kwire.ports.tcp import TcpTransport
from kwire.ports.transport import Stream
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.apis.configs import BROKER
from tests.broker.scene import HOST, PORT, Scene, running

IDLE_SECONDS = 10.0
IDLE = {"connections.max.idle.ms": "10000"}
ASK = pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, -1)
MORE_THAN_THE_NETWORK_HOLDS = 4000
"""Answers, of some hundred bytes each."""


async def connected(scene: Scene) -> Stream:
    return await scene.network.transport("client").connect(HOST, PORT)


async def alter(scene: Scene, key: str, value: str) -> None:
    """Sets a key for all brokers at run time."""
    alteration = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[alteration])
    response = await scene.call(IncrementalAlterConfigsRequest(resources=[resource]))
    assert response.responses[0].error_code == 0


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


@pytest.mark.parametrize(("max_wait_s", "answered"), [(IDLE_SECONDS * 0.9, True), (60, False)])
async def test_a_client_whose_fetch_waits_is_idle(max_wait_s: float, answered: bool, autojump_clock) -> None:
    async with running(IDLE) as scene:
        await scene.create("t")
        stream = await connected(scene)
        partition = pack(">iiqi", 1, 0, 0, 1000)
        body = pack(">iiiibih1s", -1, int(max_wait_s * 1000), 1, 1000, 0, 1, 1, b"t") + partition
        await stream.send([pack(">ihhih", 10 + len(body), ApiKey.FETCH, 4, 1, -1) + body])
        with trio.fail_after(IDLE_SECONDS * 2):
            assert bool(await stream.receive(1000)) is answered


async def test_who_waits_for_room_for_a_request_is_idle(autojump_clock) -> None:
    room = {"socket.request.max.bytes": "1000", "queued.max.request.bytes": "1000"}
    async with running({**IDLE, **room}) as scene:
        large, waiting = await connected(scene), await connected(scene)
        await large.send([pack(">i", 1000) + b"x"])
        await trio.testing.wait_all_tasks_blocked()
        await waiting.send([pack(">i", 10) + b"y"])
        for _ in range(5):
            await trio.sleep(IDLE_SECONDS / 2)
            await large.send([b"x"])
        with trio.fail_after(1):
            assert await waiting.receive(1) == b""
        assert len(scene.broker.connections) == 1


async def test_no_more_connections_than_allowed_however_quickly_they_come(autojump_clock) -> None:
    async with running({"max.connections": "3"}) as scene:
        for _ in range(4):
            await connected(scene)
        await trio.testing.wait_all_tasks_blocked()
        assert len(scene.broker.connections) == 3


async def test_where_fewer_are_allowed_who_is_silent_the_longest_goes(autojump_clock) -> None:
    async with running() as scene:
        silent, talking = await connected(scene), await connected(scene)
        await trio.sleep(1)
        await talking.send([ASK])
        assert await talking.receive(1000)
        await alter(scene, "max.connections", "2")
        with trio.fail_after(1):
            assert await silent.receive(1) == b""
        await talking.send([ASK])
        assert await talking.receive(1000)
        assert len(scene.broker.connections) == 2


async def test_there_is_room_for_brokers_though_clients_took_it_all(autojump_clock) -> None:
    listeners = {
        "listeners": f"PLAINTEXT://{HOST}:{PORT},INTERNAL://{HOST}:{PORT + 1}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
    }
    async with running({**listeners, "max.connections": "2"}) as scene:
        await trio.sleep(1)
        client = await connected(scene)
        waiting = await connected(scene)
        await trio.testing.wait_all_tasks_blocked()
        assert len(scene.broker.connections) == 2
        of_a_broker = [await scene.network.transport("client").connect(HOST, PORT + 1) for _ in range(3)]
        for stream in of_a_broker:
            await stream.send([ASK])
            with trio.fail_after(1):
                assert await stream.receive(1000)
        with trio.fail_after(1):
            assert await client.receive(1) == b""
        assert len(scene.broker.connections) == len(of_a_broker)  # of whom none goes, though they are too many
        for stream in of_a_broker[:2]:
            stream.close()
        await waiting.send([ASK])
        with trio.fail_after(1):
            assert await waiting.receive(1000)


async def resolve(host: str) -> list[str]:
    if host == "nowhere":
        raise OSError("unknown")
    return {"localhost": ["127.0.0.1", "::1"]}.get(host, [host])


async def test_limits_of_single_hosts_hold_for_all_their_addresses() -> None:
    limits = {"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "localhost:0, 10.0.0.5:2"}
    connections = Connections(BrokerConfig({}), TrioClock(), resolve)
    await connections.configure(BrokerConfig(limits))
    assert [connections.admits(host) for host in ("127.0.0.1", "::1", "10.0.0.5", "10.0.0.6")] == [
        False,
        False,
        True,
        True,
    ]
    for host in ("10.0.0.5", "10.0.0.6"):
        connections.add(None, host)  # type: ignore[arg-type]
    assert connections.admits("10.0.0.5")
    assert not connections.admits("10.0.0.6")


async def test_a_limit_for_a_host_that_nobody_knows_is_refused() -> None:
    connections = Connections(BrokerConfig({}), TrioClock(), resolve)
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides: nowhere: unknown"):
        await connections.configure(BrokerConfig({"max.connections.per.ip.overrides": "nowhere:3"}))


async def test_what_can_be_no_name_is_refused_likewise() -> None:
    connections = Connections(BrokerConfig({}), TrioClock(), TcpTransport().addresses)
    with pytest.raises(
        ConfigError, match=r"max\.connections\.per\.ip\.overrides: a\.\.b: a\.\.b can be no host's name"
    ):
        await connections.configure(BrokerConfig({"max.connections.per.ip.overrides": "a..b:3"}))


async def test_the_other_limits_count_though_a_host_is_not_known() -> None:
    connections = Connections(BrokerConfig({}), TrioClock(), resolve)
    with pytest.raises(ConfigError):
        await connections.configure(
            BrokerConfig({"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "nowhere:3"})
        )
    connections.add(None, "10.0.0.9")  # type: ignore[arg-type]
    assert not connections.admits("10.0.0.9")


async def test_hosts_are_looked_up_when_what_is_said_of_them_changed() -> None:
    asked = []

    async def addresses(host: str) -> list[str]:
        asked.append(host)
        return await resolve(host)

    connections = Connections(BrokerConfig({}), TrioClock(), addresses)
    config = BrokerConfig({"max.connections.per.ip.overrides": "one:3"})
    await connections.configure(config)
    await connections.configure(config.with_dynamic({"max.connections": "5"}))
    assert asked == ["one"]
    with pytest.raises(ConfigError):
        await connections.configure(config.with_dynamic({"max.connections.per.ip.overrides": "one:3,nowhere:1"}))
    await connections.configure(config.with_dynamic({"max.connections.per.ip.overrides": "two:0"}))
    assert asked == ["one", "one", "nowhere", "two"]
    assert not connections.admits("two")
    await connections.configure(BrokerConfig({}))
    assert connections.admits("two")


async def test_a_host_that_is_not_known_any_more_keeps_no_broker_from_starting(
    autojump_clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = "max.connections.per.ip.overrides"
    async with running() as scene:
        await alter(scene, key, "somewhere:5")
        files = scene.files

    async def addresses(transport: MemoryTransport, host: str) -> list[str]:
        return await resolve("nowhere")

    monkeypatch.setattr(MemoryTransport, "addresses", addresses)
    async with running(files=files) as scene:
        assert scene.broker.config[key] == "somewhere:5"
    assert [record.getMessage() for record in caplog.records if "connections" in record.getMessage()] == [
        f"dynamic limits of connections ignored reason='{key}: somewhere: unknown'"
    ]
    with pytest.raises(BaseExceptionGroup) as refused:
        async with running({key: "somewhere:5"}):
            pass
    assert f"{key}: somewhere: unknown" in str(refused.value.exceptions[0])


async def test_every_listener_goes_on_when_there_is_room(autojump_clock) -> None:
    connections = Connections(BrokerConfig({"max.connections": "1"}), TrioClock(), resolve)
    connections.add(None, "client")  # type: ignore[arg-type]
    with trio.fail_after(1):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(connections.until_room)
            await trio.testing.wait_all_tasks_blocked()
            connections.remove(None, "client")  # type: ignore[arg-type]


async def test_a_flood_of_bad_frames_is_logged_by_its_number(caplog, autojump_clock) -> None:
    async with running() as scene:
        for _ in range(50):
            stream = await connected(scene)
            await stream.send([pack(">i", -1)])
            assert await stream.receive(1) == b""
        assert len(caplog.records) == MOST
        await trio.sleep(INTERVAL_SECONDS + 1)
    assert caplog.records[-1].getMessage() == f"connection closed more={50 - MOST} seconds={INTERVAL_SECONDS}"


async def test_who_waits_for_room_is_not_served_by_a_broker_that_stops(autojump_clock) -> None:
    began = 0.0
    async with running({"max.connections": "2"}) as scene:
        stream = await connected(scene)
        waiting = await connected(scene)
        await waiting.send([ASK])
        await trio.testing.wait_all_tasks_blocked()
        assert len(scene.broker.connections) == 2
        began = trio.current_time()
        scene.broker.stop(60)
        stream.close()
        scene.connection.close()
        assert await waiting.receive(1000) == b""
    assert trio.current_time() - began < 1
