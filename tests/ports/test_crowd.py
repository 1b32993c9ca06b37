"""Where many can read at once, a few are woken in each pass of the event loop, in the order in which they could."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from kwire.ports import crowd as crowds
from kwire.ports.crowd import AT_ONCE, Crowd, open_crowd
from kwire.ports.tcp import TcpTransport
from kwire.ports.transport import Stream, StreamClosed

MANY = 5 * AT_ONCE


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    pairs = [socket.socketpair() for _ in range(MANY)]
    yield pairs
    for pair in pairs:
        for end in pair:
            end.close()


async def test_a_few_in_each_pass_and_who_could_read_first_comes_first(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    woken: list[int] = []

    async def wait(crowd: Crowd, number: int) -> None:
        await crowd.wait_readable(pairs[number][0].fileno())
        woken.append(number)

    order = [*range(1, MANY, 2), *range(0, MANY, 2)]
    async with open_crowd() as crowd, trio.open_nursery() as nursery:
        assert crowd is not None
        for number in range(MANY):
            nursery.start_soon(wait, crowd, number)
        await trio.testing.wait_all_tasks_blocked()
        for number in order:
            pairs[number][1].send(b"x")
        passes = 0
        with trio.fail_after(10):
            while len(woken) < MANY:
                await trio.lowlevel.checkpoint()
                passes += 1
                assert len(woken) <= passes * AT_ONCE
    for start in range(0, MANY, AT_ONCE):  # the tasks of one pass run in any order
        assert sorted(woken[start : start + AT_ONCE]) == sorted(order[start : start + AT_ONCE])


async def test_who_does_not_wait_any_more_is_not_woken(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    mine, other = pairs[0]
    async with open_crowd() as crowd:
        assert crowd is not None
        with trio.move_on_after(0.01) as scope:
            await crowd.wait_readable(mine.fileno())
        assert scope.cancelled_caught
        other.send(b"x")
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(5):
            await crowd.wait_readable(mine.fileno())


async def serve(handler_seen: list[Stream], stream: Stream) -> None:
    """Answers each byte with itself, patiently."""
    stream.patient = True
    handler_seen.append(stream)
    while data := await stream.receive(100):
        await stream.send([data])


async def test_a_patient_stream_receives_what_comes_and_the_end() -> None:
    seen: list[Stream] = []
    listener = await TcpTransport().listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, lambda stream: serve(seen, stream))
        stream = await TcpTransport().connect("127.0.0.1", listener.port)
        with trio.fail_after(5):
            for data in (b"a", b"b"):
                await stream.send([data])
                assert await stream.receive(100) == data
            seen[0].patient = False  # from the next one on
            for data in (b"c", b"d"):
                await stream.send([data])
                assert await stream.receive(100) == data
        stream.close()
        listener.close()  # serve ends when its handlers have: the end of the stream was seen


async def test_closing_a_patient_stream_wakes_who_waits_for_it() -> None:
    seen: list[Stream] = []
    failures: list[StreamClosed] = []

    async def handler(stream: Stream) -> None:
        try:
            await serve(seen, stream)
        except StreamClosed as error:
            failures.append(error)

    listener = await TcpTransport().listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, handler)
        stream = await TcpTransport().connect("127.0.0.1", listener.port)
        await stream.send([b"a"])
        with trio.fail_after(5):
            assert await stream.receive(100) == b"a"
            seen[0].close()
            assert await stream.receive(100) == b""
        stream.close()
        listener.close()
    assert [str(error) for error in failures] == ["this side was closed"]


async def test_without_epoll_nobody_is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(crowds.select, "epoll")
    await test_a_patient_stream_receives_what_comes_and_the_end()
