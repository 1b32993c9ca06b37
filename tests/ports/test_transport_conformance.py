"""What every transport must do: the same tests against TCP on the loopback interface and the network in memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
import trio
import trio.testing

from kwire.ports.files import File, FileSlice
from kwire.ports.memory_transport import MemoryNetwork
from kwire.ports.tcp import TcpTransport
from kwire.ports.transport import Listener, Stream, StreamClosed, Transport
from tests.ports.streams import LARGE, PlainFile, pattern, read_exactly


@pytest.fixture(params=["tcp", "memory"])
def transport(request: pytest.FixtureRequest) -> Transport:
    return TcpTransport() if request.param == "tcp" else MemoryNetwork().transport("here")


async def echo(stream: Stream) -> None:
    while data := await stream.receive(65536):
        await stream.send([data])


class Served:
    """A listener with a handler, for the length of an `async with`."""

    def __init__(self, transport: Transport, handler: Callable[[Stream], Awaitable[None]]) -> None:
        self.transport = transport
        self.handler = handler

    async def __aenter__(self) -> Listener:
        self.listener = await self.transport.listen("127.0.0.1", 0)
        self.nursery_manager = trio.open_nursery()
        self.nursery = await self.nursery_manager.__aenter__()
        self.nursery.start_soon(self.listener.serve, self.handler)
        return self.listener

    async def __aexit__(self, *details: object) -> None:
        self.nursery.cancel_scope.cancel()
        self.listener.close()
        await self.nursery_manager.__aexit__(*details)  # type: ignore[arg-type]


async def test_bytes_arrive_in_order(transport: Transport) -> None:
    async with Served(transport, echo) as listener:
        stream = await transport.connect(listener.host, listener.port)
        await stream.send([b"one", bytearray(b"two"), memoryview(b"_three")[1:], b"", b"four"])
        assert await read_exactly(stream, 15) == b"onetwothreefour"
        stream.close()


async def test_both_ends_know_each_other(transport: Transport) -> None:
    hosts = []

    async def note(stream: Stream) -> None:
        hosts.append(stream.peer_host)
        await stream.send([str(stream.peer_port).encode()])

    async with Served(transport, note) as listener:
        assert listener.port > 0
        stream = await transport.connect(listener.host, listener.port)
        assert (stream.peer_host, stream.peer_port) == (listener.host, listener.port)
        assert int(await stream.receive(100)) not in (0, listener.port)
        assert hosts == [listener.host]
        stream.close()


async def test_what_a_slow_reader_leaves_waits_and_arrives_whole(transport: Transport) -> None:
    content = pattern(LARGE)
    sent = trio.Event()

    async def send_all(stream: Stream) -> None:
        await stream.send([content[: LARGE // 3], b"", content[LARGE // 3 :]])
        sent.set()

    async with Served(transport, send_all) as listener:
        stream = await transport.connect(listener.host, listener.port)
        await trio.testing.wait_all_tasks_blocked()
        assert not sent.is_set(), "nothing held the sender back"
        assert await read_exactly(stream, LARGE) == content
        await sent.wait()
        assert await stream.receive(1) == b""
        stream.close()


async def test_more_buffers_than_one_system_call_takes(transport: Transport) -> None:
    buffers = [number.to_bytes(4, "big") for number in range(5000)]
    async with Served(transport, echo) as listener:
        stream = await transport.connect(listener.host, listener.port)
        await stream.send(buffers)
        assert await read_exactly(stream, 20_000) == b"".join(buffers)
        stream.close()


@pytest.mark.parametrize("size", [1, 100_000, LARGE])
async def test_file_slices_among_buffers(
    transport: Transport, open_file: Callable[[bytes], PlainFile], size: int
) -> None:
    content = pattern(size + 2000)
    file = open_file(content)
    large, small, empty = (
        FileSlice(cast(File, file), position, length) for position, length in ((1000, size), (0, 10), (5, 0))
    )
    expected = b"header" + content[1000 : 1000 + size] + b"between" + content[:10] + b"trailer"

    async def send_parts(stream: Stream) -> None:
        await stream.send([b"header", large, b"between", small, empty, b"trailer"])

    async with Served(transport, send_parts) as listener:
        stream = await transport.connect(listener.host, listener.port)
        assert await read_exactly(stream, len(expected)) == expected
        assert await stream.receive(1) == b""
        stream.close()


async def test_a_file_system_without_sendfile(
    transport: Transport, open_file: Callable[[bytes], PlainFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slice is read instead, and arrives all the same."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EINVAL, "scripted")

    monkeypatch.setattr(os, "sendfile", refuse)
    content = pattern(1_000_000)
    part = FileSlice(cast(File, open_file(content)), 0, len(content))

    async def send_part(stream: Stream) -> None:
        await stream.send([b"h", part, b"t"])

    async with Served(transport, send_part) as listener:
        stream = await transport.connect(listener.host, listener.port)
        assert await read_exactly(stream, len(content) + 2) == b"h" + content + b"t"
        stream.close()


@pytest.mark.parametrize("size", [1000, 100_000])
async def test_a_file_shorter_than_its_slice_ends_the_stream(
    transport: Transport, open_file: Callable[[bytes], PlainFile], size: int
) -> None:
    file = open_file(pattern(size - 1))
    async with Served(transport, echo) as listener:
        stream = await transport.connect(listener.host, listener.port)
        with pytest.raises(StreamClosed, match="ends before byte"):
            await stream.send([b"header", FileSlice(cast(File, file), 0, size)])
        with pytest.raises(StreamClosed, match="did not finish"):
            await stream.send([b"this would be read as the rest of the torn frame"])
        stream.close()


async def test_end_of_stream(transport: Transport) -> None:
    async def say_and_leave(stream: Stream) -> None:
        await stream.send([b"last words"])

    async with Served(transport, say_and_leave) as listener:
        stream = await transport.connect(listener.host, listener.port)
        assert await read_exactly(stream, 10) == b"last words"
        assert await stream.receive(10) == b""
        assert await stream.receive(10) == b""
        stream.close()


async def send_until_refused(stream: Stream) -> None:
    while True:  # a real peer's refusal comes some time after the first bytes
        await stream.send([bytes(1000)])


async def test_sending_to_a_peer_that_is_gone_fails(transport: Transport) -> None:
    async def leave(stream: Stream) -> None:
        pass

    async with Served(transport, leave) as listener:
        stream = await transport.connect(listener.host, listener.port)
        assert await stream.receive(1) == b""
        with pytest.raises(StreamClosed):
            await send_until_refused(stream)
        stream.close()


async def test_close_wakes_who_waits(transport: Transport) -> None:
    async def fails(operation: Callable[[], Awaitable[object]]) -> None:
        with pytest.raises(StreamClosed):
            await operation()

    async def neither_read_nor_write(stream: Stream) -> None:
        await trio.sleep_forever()

    async with Served(transport, neither_read_nor_write) as listener:
        stream = await transport.connect(listener.host, listener.port)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails, lambda: stream.receive(1))
            nursery.start_soon(fails, lambda: stream.send([bytes(4 * LARGE)]))
            await trio.testing.wait_all_tasks_blocked()
            stream.close()
        await fails(lambda: stream.receive(1))
        await fails(lambda: stream.send([b"x"]))
        stream.close()


async def test_a_cancelled_send_leaves_no_usable_stream(transport: Transport) -> None:
    async def never_read(stream: Stream) -> None:
        await trio.sleep_forever()

    async with Served(transport, never_read) as listener:
        stream = await transport.connect(listener.host, listener.port)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send, [bytes(4 * LARGE)])
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        with pytest.raises(StreamClosed, match="did not finish"):
            await stream.send([b"x"])
        stream.close()


async def test_nobody_listens(transport: Transport) -> None:
    listener = await transport.listen("127.0.0.1", 0)
    listener.close()
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        await transport.connect("127.0.0.1", listener.port)


async def test_a_taken_address_is_refused(transport: Transport) -> None:
    listener = await transport.listen("127.0.0.1", 0)
    with pytest.raises(OSError, match="Address already in use"):
        await transport.listen("127.0.0.1", listener.port)
    listener.close()


async def test_close_ends_serving(transport: Transport) -> None:
    listener = await transport.listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, echo)
        await trio.testing.wait_all_tasks_blocked()
        listener.close()


async def test_a_failing_handler_harms_nobody_else(transport: Transport, caplog: pytest.LogCaptureFixture) -> None:
    async def fail_on_x(stream: Stream) -> None:
        while data := await stream.receive(100):
            if data == b"x":
                raise ValueError("x")
            await stream.send([data])

    async with Served(transport, fail_on_x) as listener:
        sound = await transport.connect(listener.host, listener.port)
        doomed = await transport.connect(listener.host, listener.port)
        await doomed.send([b"x"])
        assert await doomed.receive(1) == b""
        await sound.send([b"y"])
        assert await sound.receive(10) == b"y"
        doomed.close()
        sound.close()
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_a_flooding_peer_leaves_others_their_turn(transport: Transport) -> None:
    """Two connections that always have something to read are read in turns."""
    order: list[int] = []

    async def count(stream: Stream) -> None:
        while data := await stream.receive(1000):
            order.append(data[0])

    async with Served(transport, count) as listener, trio.open_nursery() as nursery:
        streams = [await transport.connect(listener.host, listener.port) for _ in range(2)]
        for number, stream in enumerate(streams):
            nursery.start_soon(stream.send, [bytes([number]) * 4_000_000])
        while len(order) < 8_000:
            await trio.lowlevel.checkpoint()
        for stream in streams:
            stream.close()
    first = order[:4_000]
    assert 800 <= sum(first) <= 3_200


async def test_a_client_is_told_under_an_address_of_its_host(transport: Transport) -> None:
    listener = await transport.listen("localhost", 0)
    told = []

    async def note(stream: Stream) -> None:
        told.append(stream.peer_host)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, note)
        stream = await transport.connect("localhost", listener.port)
        with trio.fail_after(5):
            await stream.receive(1)
        nursery.cancel_scope.cancel()
    stream.close()
    assert told[0] in await transport.addresses("localhost")
