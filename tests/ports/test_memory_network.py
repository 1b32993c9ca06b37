"""What only a network in memory can do: links cut and healed, connections reset."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from kwire.ports.memory_transport import MemoryNetwork, MemoryStream
from kwire.ports.transport import Stream, StreamClosed

PORT = 9092


@pytest.fixture
def network() -> MemoryNetwork:
    return MemoryNetwork()


@asynccontextmanager
async def connected(network: MemoryNetwork) -> AsyncIterator[tuple[MemoryStream, Stream]]:
    """A stream from host a, and its other end at host b."""
    ends: list[Stream] = []
    accepted = trio.Event()

    async def keep(stream: Stream) -> None:
        ends.append(stream)
        accepted.set()
        await trio.sleep_forever()

    listener = await network.transport("b").listen("b", PORT)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, keep)
        near = await network.transport("a").connect("b", PORT)
        await accepted.wait()
        yield near, ends[0]
        nursery.cancel_scope.cancel()


async def test_a_cut_link_holds_back_bytes_and_ends(network: MemoryNetwork) -> None:
    async with connected(network) as (near, far):
        network.cut("a", "b")
        await near.send([b"late"])
        near.close()
        received: list[bytes] = []

        async def read() -> None:
            received.append(await far.receive(100))
            received.append(await far.receive(100))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            assert received == []
            network.heal("b", "a")
        assert received == [b"late", b""]


async def test_a_link_cut_one_way_still_passes_the_other(network: MemoryNetwork) -> None:
    async with connected(network) as (near, far):
        network.cut("a", "b", both_ways=False)
        await near.send([b"lost for now"])
        await far.send([b"heard"])
        assert await near.receive(100) == b"heard"
        with trio.move_on_after(0) as scope:
            await far.receive(100)
        assert scope.cancelled_caught


async def test_connecting_over_a_cut_link_waits(network: MemoryNetwork) -> None:
    async with connected(network):
        network.cut("a", "b")
        streams: list[Stream] = []

        async def connect() -> None:
            streams.append(await network.transport("a").connect("b", PORT))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(connect)
            await trio.testing.wait_all_tasks_blocked()
            assert streams == []
            network.heal("a", "b")
        assert len(streams) == 1


@pytest.mark.parametrize("arguments", [("a",), ("b", "a")])
async def test_reset_breaks_both_ends_and_loses_what_was_on_its_way(
    network: MemoryNetwork, arguments: tuple[str, ...]
) -> None:
    async with connected(network) as (near, far):
        await near.send([b"lost"])
        network.reset(*arguments)
        for stream in (near, far):
            with pytest.raises(StreamClosed, match="reset"):
                await stream.receive(100)
            with pytest.raises(StreamClosed, match="reset"):
                await stream.send([b"x"])


async def test_reset_spares_other_hosts(network: MemoryNetwork) -> None:
    async with connected(network) as (near, far):
        network.reset("c")
        network.reset("a", "c")
        await near.send([b"x"])
        assert await far.receive(1) == b"x"


async def test_reset_wakes_who_waits(network: MemoryNetwork) -> None:
    async with connected(network) as (near, far):

        async def read(stream: Stream) -> None:
            with pytest.raises(StreamClosed):
                await stream.receive(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, near)
            nursery.start_soon(read, far)
            await trio.testing.wait_all_tasks_blocked()
            network.reset("a")


async def test_hosts_are_apart(network: MemoryNetwork) -> None:
    """The same port on two hosts is two addresses, and each host's localhost is itself."""
    first = await network.transport("a").listen("localhost", PORT)
    second = await network.transport("b").listen("", PORT)
    assert (first.host, second.host) == ("a", "b")
    with pytest.raises(ConnectionRefusedError):
        await network.transport("c").connect("localhost", PORT)


async def test_a_closed_listener_breaks_those_it_never_accepted(network: MemoryNetwork) -> None:
    listener = await network.transport("b").listen("b", PORT)
    stream = await network.transport("a").connect("b", PORT)
    listener.close()
    with pytest.raises(StreamClosed):
        await stream.receive(1)
