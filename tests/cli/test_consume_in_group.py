"""`kwire consume --group`, with a broker in memory: where it begins, goes on and stops."""

from __future__ import annotations

import trio

from kwire.cli.consume_in_group import consume_in_group
from kwire.cli.positions import BEGINNING, END
from kwire.client.client import Client
from kwire.client.consumer import ConsumedRecord
from kwire.client.offsets import Isolation
from kwire.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tests.broker.scene import HOST, PORT, Scene, running

DELAYED = {"group.initial.rebalance.delay.ms": "3000"}
"""A member waits so long for the others before it has its partitions."""


async def consume(
    scene: Scene, printed: list[bytes | None], *, first: str = BEGINNING, count: int | None = None
) -> None:
    """Until the end of the topic; what it prints goes into `printed`."""
    client = Client(scene.network.transport("cli"), [(HOST, PORT)])

    def render(record: ConsumedRecord) -> bytes:
        printed.append(record.value)
        return b""

    await consume_in_group(client, "g", "t", first, True, count, render, Isolation.READ_UNCOMMITTED)


async def test_it_goes_on_where_the_group_is(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", b"a", b"b", b"c")
        printed: list[bytes | None] = []
        await consume(scene, printed, count=1)
        assert printed == [b"a"]
        await consume(scene, printed)
        assert printed == [b"a", b"b", b"c"]
        await consume(scene, printed)
        assert printed == [b"a", b"b", b"c"]


async def test_it_begins_at_the_end_where_the_group_has_read_nothing(autojump_clock) -> None:
    async with running() as scene:
        await scene.create("t")
        await scene.produce("t", b"a")
        printed: list[bytes | None] = []
        await consume(scene, printed, first=END)
        assert printed == []


async def test_the_end_is_that_of_the_start(autojump_clock) -> None:
    async with running(DELAYED) as scene:
        await scene.create("t")
        await scene.produce("t", b"a", b"b")
        printed: list[bytes | None] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume, scene, printed)
            await trio.sleep(1)
            await scene.produce("t", b"late")
        assert printed == [b"a", b"b"]


async def test_a_partition_that_comes_after_the_start_is_not_waited_for(autojump_clock) -> None:
    async with running(DELAYED) as scene:
        await scene.create("t")
        await scene.produce("t", b"a")
        printed: list[bytes | None] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consume, scene, printed)
            await trio.sleep(1)
            more = CreatePartitionsTopic(name="t", count=2, assignments=None)
            await scene.call(CreatePartitionsRequest(topics=[more], timeout_ms=1000))
            await scene.produce("t", b"late", partition=1)
        assert printed == [b"a"]
