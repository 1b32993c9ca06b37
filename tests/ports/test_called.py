"""Streams of real sockets that are called instead of being woken: all get their turn, and what they are owed."""

from __future__ import annotations

import errno
import os
import random
import socket
import threading
from collections import Counter
from collections.abc import Awaitable
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from kwire.ports import crowd as crowds
from kwire.ports import open_crowd as opening
from kwire.ports import tcp_stream
from kwire.ports.attending import Next
from kwire.ports.files import File, FileSlice
from kwire.ports.real_files import PosixFileSystem
from kwire.ports.tcp import TcpTransport
from kwire.ports.tcp_stream import TcpStream
from kwire.ports.transport import Part, Stream, StreamClosed
from tests.ports.streams import (
    LARGE,
    Notes,
    Passes,
    PlainFile,
    Server,
    echoing,
    has_come,
    pattern,
    read_exactly,
    reset,
    until,
)

CLIENTS = 40


async def ends(attend: Awaitable[None], failures: list[str]) -> None:
    try:
        await attend
    except StreamClosed as failure:
        failures.append(str(failure))


async def test_many_are_answered_and_nobody_starves() -> None:
    clients, rounds = 100, 20
    done = Counter(dict.fromkeys(range(clients), 0))
    apart: list[int] = []

    async def serve(stream: Stream) -> None:
        await stream.attend(echoing(stream))

    async def ask(number: int) -> None:
        stream = await TcpTransport().connect("127.0.0.1", listener.port)
        for turn in range(rounds):
            data = f"{number} asks for {turn}".encode()
            await stream.send([data])
            assert await read_exactly(stream, len(data)) == data
            done[number] += 1
            apart.append(max(done.values()) - min(done.values()))
        stream.close()

    listener = await TcpTransport().listen("127.0.0.1", 0, backlog=clients)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, serve)
        with trio.fail_after(30):
            async with trio.open_nursery() as asking:
                for number in range(clients):
                    asking.start_soon(ask, number)
        listener.close()  # serve ends when its handlers have
    assert set(done.values()) == {rounds}
    assert sorted(apart)[len(apart) // 2] <= rounds // 2


async def test_called_or_receiving_alone_or_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a connection does whose requests need a task now and then: nothing is lost on the way to and fro."""
    monkeypatch.setattr(crowds, "BUSY_PER_SECOND", 0.0)
    joined: set[bool] = set()
    accepted: list[TcpStream] = []

    async def serve(stream: Stream) -> None:
        chosen = random.Random(stream.peer_port)
        accepted.append(cast(TcpStream, stream))
        notes = echoing(stream)

        def echo(data: bytes) -> list[Part]:
            notes.asks = Next.LEAVE if chosen.random() < 0.3 else Next.READ
            return [data]

        notes.answers = echo
        while not notes.ended:
            await stream.attend(notes)
            while not notes.ended and chosen.random() < 0.6:
                data = await stream.receive(chosen.choice([1, 1000]))
                joined.add(accepted[0]._seat.joined)
                if not data:
                    return
                await stream.send([data])

    async def ask(stream: Stream, rounds: int) -> None:
        for number in range(rounds):
            data = b"x" * random.Random(number).choice([1, 3, 2000])
            await stream.send([data])
            assert await read_exactly(stream, len(data)) == data

    listener = await TcpTransport().listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, serve)
        with trio.fail_after(30):
            first = await TcpTransport().connect("127.0.0.1", listener.port)
            for among_many in (False, True, False):
                joined.clear()
                async with trio.open_nursery() as asking:
                    asking.start_soon(ask, first, 100)
                    for _ in range(CLIENTS if among_many else 0):
                        asking.start_soon(ask, await TcpTransport().connect("127.0.0.1", listener.port), 30)
                assert among_many in joined
            nursery.cancel_scope.cancel()


@pytest.mark.plain
async def test_where_the_crowd_has_no_room_any_more(
    server: Server, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task attends who was called before, waits when it is to wait, and is called again when there is room."""
    stream, client = await server.connect()
    notes = echoing(stream)

    async def serve() -> None:
        while True:
            await stream.attend(notes)
            if stream.unsent:
                await stream.send([])
            await stream.send([await stream.receive(100)])  # alone: it has left the crowd

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    nursery.start_soon(serve)
    for room in (True, False, True):
        with monkeypatch.context() as patch:
            if not room:
                patch.setattr(crowds.Crowd, "join", full)
            notes.asks = Next.LEAVE
            client.send(b"task")
            assert await has_come(client, 4) == b"task"
            await trio.testing.wait_all_tasks_blocked()
            assert not stream._seat.joined
            notes.asks = Next.WAIT
            client.send(b"received")
            assert await has_come(client, 8) == b"received"
            client.send(b"attended")
            assert await has_come(client, 8) == b"attended"
            await trio.testing.wait_all_tasks_blocked()
            assert stream._seat.joined is room
            client.send(b"waits")
            await trio.testing.wait_all_tasks_blocked()
            assert notes.heard[-1] == b"attended"
            notes.asks = Next.READ
            stream.resume()
            assert await has_come(client, 5) == b"waits"


async def test_where_there_is_no_epoll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "trio_loop", lambda: None)
    await test_many_are_answered_and_nobody_starves()


@pytest.mark.parametrize("before", [True, False])
async def test_who_never_pauses_does_not_keep_others_waiting(
    server: Server, nursery: trio.Nursery, before: bool
) -> None:
    """Whether it is attended before what floods comes, or after."""
    size = 100_000
    flood, flooding = await server.connect()
    flooded = Notes(flood, wanted=1)
    others = [await server.connect() for _ in range(3)]
    when_answered: list[int] = []

    def answer(data: bytes) -> list[Part]:
        when_answered.append(len(flooded.heard))
        return [data]

    for stream, _ in others:
        notes = Notes(stream)
        notes.answers = answer
        nursery.start_soon(stream.attend, notes)
    await trio.testing.wait_all_tasks_blocked()
    if before:
        nursery.start_soon(flood.attend, flooded)
        await trio.testing.wait_all_tasks_blocked()
    flooding.sendall(bytes(size))
    if not before:
        nursery.start_soon(flood.attend, flooded)
    for _, client in others:
        client.send(b"x")
    for _, client in others:
        assert await has_come(client, 1) == b"x"
    assert max(when_answered) < size / 2
    await until(lambda: len(flooded.heard) == size)


async def test_other_tasks_have_their_turn_while_many_are_called(
    server: Server, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those for whom there was no time come first in the next pass, before who asks once more."""
    monkeypatch.setattr(crowds, "PASS_SECONDS", -1.0)
    passes, order = Passes(), cast(list[int], [])
    when: Counter[int] = Counter()

    def answers(number: int, data: bytes) -> list[Part]:
        order.append(number)
        when[passes.number] += 1
        if data == b"the first":
            server.clients[number].send(b"once more")
        return [data]

    for number in range(CLIENTS):
        stream, _ = await server.connect()
        notes = Notes(stream)
        notes.answers = lambda data, number=number: answers(number, data)
        nursery.start_soon(stream.attend, notes)
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.add_instrument(passes)
    for client in server.clients:
        client.send(b"the first")
    for client in server.clients:
        assert await has_come(client, 9) == b"the first"
    assert max(when.values()) == 1
    for client in server.clients:
        assert await has_come(client, 9) == b"once more"
    for turn in range(2):
        assert sorted(order[turn * CLIENTS : (turn + 1) * CLIENTS]) == list(range(CLIENTS))


@pytest.mark.usefixtures("long_passes")
async def test_answers_leave_when_all_that_came_is_handled(server: Server, nursery: trio.Nursery) -> None:
    """A client that waits for all of them is woken once."""
    happened: list[tuple[str, int]] = []

    def answers(data: bytes) -> list[Part]:
        happened.append(("handled", sum(stream.sent for stream in server.accepted)))
        return [data]

    for _ in range(CLIENTS):
        stream, _ = await server.connect()
        notes = Notes(stream)
        notes.answers = answers
        nursery.start_soon(stream.attend, notes)
    for _ in range(3):
        await trio.testing.wait_all_tasks_blocked()
        happened.clear()
        for client in server.clients:
            client.send(b"x")
        for client in server.clients:
            assert await has_come(client, 1) == b"x"
        # It may be that the system does not show all of them at once.
        assert sum(first[1] != second[1] for first, second in pairwise(happened)) < CLIENTS / 4


async def test_who_is_closed_when_something_has_come_is_not_called(server: Server) -> None:
    """Two hear something in the same pass, and the first one closes the other."""
    pairs = [await server.connect() for _ in range(2)]
    all_notes = [Notes(stream) for stream, _ in pairs]
    failures: list[str] = []
    for notes, (other, _) in zip(all_notes, reversed(pairs), strict=True):
        notes.answers = lambda data, other=other: other.close() or ()
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            for notes in all_notes:
                attending.start_soon(ends, notes.stream.attend(notes), failures)
            await trio.testing.wait_all_tasks_blocked()
            for _, client in pairs:
                client.send(b"x")
            await until(lambda: failures)
            attending.cancel_scope.cancel()
    assert failures == ["this side was closed"]
    assert sorted(notes.content for notes in all_notes) == [b"", b"x"]


@pytest.mark.parametrize("asks", list(Next))
async def test_a_receiver_may_close_its_stream(server: Server, asks: Next) -> None:
    stream, client = await server.connect()
    notes = Notes(stream)
    notes.asks = asks
    notes.answers = lambda data: stream.close() or [b"too late"]
    failures: list[str] = []
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            attending.start_soon(ends, stream.attend(notes), failures)
            await trio.testing.wait_all_tasks_blocked()
            client.send(b"x")
    assert failures == ["this side was closed"]
    assert notes.heard == [b"x"]


async def test_one_that_can_not_send_harms_nobody_else(server: Server, nursery: trio.Nursery) -> None:
    failures: list[str] = []
    all_notes = []
    for _ in range(3):
        stream, client = await server.connect()
        notes = Notes(stream)
        notes.asks = Next.WAIT
        all_notes.append(notes)
        nursery.start_soon(ends, stream.attend(notes), failures)
        client.send(b"x")
    await until(lambda: all(notes.heard for notes in all_notes))
    reset(server.clients[0])
    for notes in all_notes:
        notes.asks, notes.answers = Next.READ, lambda data: [b"answer"]
        notes.stream.resume()
    for client in server.clients[1:]:
        assert await has_come(client, 6) == b"answer"
    await until(lambda: failures)
    assert len(failures) == 1
    for client in server.clients[1:]:
        client.send(b"x")
        assert await has_come(client, 6) == b"answer"


async def attend_and_send(stream: TcpStream, notes: Notes) -> None:
    """As a connection does: what the stream leaves to its task is sent by that."""
    while True:
        await stream.attend(notes)
        await stream.send([])


@pytest.mark.parametrize("size", [1000, 8_000_000])
async def test_nothing_is_held_back_when_all_is_sent(
    server: Server, nursery: trio.Nursery, tmp_path: Path, size: int
) -> None:
    """Parts that fill packets together: the last one, too, leaves at once, whoever has sent it."""
    (tmp_path / "segment.log").write_bytes(pattern(size))
    file: File = PosixFileSystem().open(str(tmp_path / "segment.log"))
    stream, client = await server.connect()
    notes = Notes(stream)
    notes.answers = lambda data: [b"header", FileSlice(file, 0, size), b"trailer"]

    nursery.start_soon(attend_and_send, stream, notes)
    client.send(b"x")
    assert await has_come(client, size + 13) == b"header" + pattern(size) + b"trailer"
    await trio.testing.wait_all_tasks_blocked()
    assert stream._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK) == 0
    file.close()


class ColdFile(PlainFile):
    """Nothing of it is in the page cache but what was loaded."""

    def __init__(self, path: str, descriptor: int) -> None:
        super().__init__(path, descriptor, sendable=True)
        self.loads: list[tuple[int, int, int]] = []
        """(thread, position, end)"""

    def resident(self, position: int, size: int) -> bool:
        return any(start <= position and position + size <= end for _, start, end in self.loads)

    def load(self, position: int, size: int) -> None:
        self.loads.append((threading.get_ident(), position, position + size))


@pytest.mark.parametrize("waits", [False, True])
async def test_what_waits_for_room_for_long_is_loaded_by_a_thread(
    server: Server, nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """The page cache may have lost it meanwhile, and the event loop must not wait for the disk."""
    monkeypatch.setattr(tcp_stream, "STALE_SECONDS", 0.0 if waits else 3600.0)
    (tmp_path / "segment.log").write_bytes(pattern(LARGE))
    stream, client = await server.connect()
    notes = Notes(stream)
    with (tmp_path / "segment.log").open("rb") as opened:
        file = ColdFile(opened.name, opened.fileno())
        between = LARGE - 100_000
        notes.answers = lambda data: [
            b"header",
            FileSlice(cast(File, file), 0, between),
            b"between",
            FileSlice(cast(File, file), between, LARGE - between),
            b"trailer",
        ]
        expected = b"header" + pattern(LARGE)[:between] + b"between" + pattern(LARGE)[between:] + b"trailer"

        nursery.start_soon(attend_and_send, stream, notes)
        client.send(b"x")
        await until(lambda: stream.held_up)
        sent = stream.sent - len(b"header")
        assert sent < between
        assert await has_come(client, len(expected)) == expected
    assert threading.get_ident() not in {thread for thread, _, _ in file.loads}
    if waits:
        assert file.loads[0][1] == sent
        assert file.loads[-1][2] == LARGE
        assert all(start <= before for (_, _, before), (_, start, _) in pairwise(file.loads))
    else:
        assert file.loads == []


async def test_what_comes_behind_other_parts_is_not_sent_cold_either(
    server: Server, nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the stream itself, that sends bytes and goes on with a file."""
    monkeypatch.setattr(tcp_stream, "STALE_SECONDS", 0.0)
    (tmp_path / "segment.log").write_bytes(pattern(1000))
    sent_cold: list[int] = []
    sendfile = os.sendfile

    def checked(to: int, descriptor: int, position: int, size: int) -> int:
        if not file.resident(position, size):
            sent_cold.append(position)
        return sendfile(to, descriptor, position, size)

    monkeypatch.setattr(os, "sendfile", checked)
    stream, client = await server.connect()
    notes = Notes(stream)
    with (tmp_path / "segment.log").open("rb") as opened:
        file = ColdFile(opened.name, opened.fileno())
        notes.answers = lambda data: [pattern(LARGE), FileSlice(cast(File, file), 0, 1000)]

        nursery.start_soon(attend_and_send, stream, notes)
        client.send(b"x")
        await until(lambda: stream.held_up)
        assert await has_come(client, LARGE + 1000) == pattern(LARGE) + pattern(1000)
    assert file.loads
    assert sent_cold == []
