"""A stream that has more to send than there is room for: the crowd sends the rest, and receives nothing meanwhile."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import NamedTuple, cast

import pytest
import trio
import trio.testing

from kwire.ports import crowd as crowds
from kwire.ports.attending import Next
from kwire.ports.files import File, FileSlice
from kwire.ports.tcp_sending import SENDFILE_BYTES
from kwire.ports.tcp_stream import RECEIVING_SECONDS, TcpStream
from kwire.ports.transport import Part, StreamClosed
from kwire.ports.turns import TURN_SECONDS
from tests.ports.streams import LARGE, Notes, PlainFile, Server, has_come, pattern, reset, until

CONTENT = pattern(LARGE)


class Held(NamedTuple):
    """Of a client that has asked, and takes nothing of the answer."""

    stream: TcpStream
    client: socket.socket
    notes: Notes
    over: list[str | None]
    """When the attendance is over: why it failed, or None."""

    async def takes(self, size: int = LARGE) -> bytes:
        return await has_come(self.client, size)


@pytest.fixture
async def held(server: Server, nursery: trio.Nursery) -> Held:
    stream, client = await server.connect()
    notes = Notes(stream)
    held = Held(stream, client, notes, [])
    await asks(held, nursery, [CONTENT])
    return held


async def asks(held: Held, nursery: trio.Nursery, answer: list[Part]) -> None:
    held.notes.answers = lambda data: answer if data == b"large" else [data]
    nursery.start_soon(attend, held)
    held.client.send(b"large")
    await until(lambda: held.notes.heard)
    await trio.testing.wait_all_tasks_blocked()


async def attend(held: Held) -> None:
    failure = None
    try:
        await held.stream.attend(held.notes)
    except StreamClosed as error:
        failure = str(error)
    held.over.append(failure)


async def test_the_rest_arrives_without_its_task(held: Held) -> None:
    assert held.stream.unsent
    assert 0 < held.stream.sent < LARGE
    assert await held.takes() == CONTENT
    assert not held.stream.unsent
    assert held.stream.sent == LARGE
    assert not held.over
    assert not cast(crowds._CrowdSeat, held.stream._seat).ended


async def test_nothing_is_received_meanwhile(held: Held) -> None:
    held.client.send(b"next")
    await trio.testing.wait_all_tasks_blocked()
    assert held.notes.heard == [b"large"]
    assert await held.takes() == CONTENT
    assert await held.takes(4) == b"next"
    held.client.send(b"and so on")
    assert await held.takes(9) == b"and so on"
    assert not held.over


@pytest.mark.plain
@pytest.mark.parametrize("ends", [False, True])
async def test_what_comes_meanwhile_keeps_nobody_busy(
    held: Held, server: Server, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    pushes: list[None] = []
    push = held.stream.push
    monkeypatch.setattr(held.stream, "push", lambda: pushes.append(None) or push())
    stream, client = await server.connect()
    quick = Held(stream, client, Notes(stream), [])
    await asks(quick, nursery, [b"x"])
    assert await quick.takes(1) == b"x"
    held.client.send(b"next")
    if ends:
        held.client.shutdown(socket.SHUT_WR)
    for _ in range(50):
        client.send(b"x")
        assert await quick.takes(1) == b"x"
    assert not pushes
    assert await held.takes(LARGE + 4) == CONTENT + b"next"
    assert len(pushes) < 100
    await until(lambda: held.notes.ended is ends)


async def test_who_is_held_up_with_what_came_before_it_was_attended(server: Server, nursery: trio.Nursery) -> None:
    """And takes longer for it than its turn is: it receives no more, and is told of room."""
    stream, client = await server.connect()
    held = Held(stream, client, Notes(stream, wanted=5), [])

    def answers(data: bytes) -> list[Part]:
        if data == b"large":
            time.sleep(2 * RECEIVING_SECONDS)
            return [CONTENT]
        return [data]

    held.notes.answers = answers
    client.send(b"first")
    held.notes.asks = Next.LEAVE
    await stream.attend(held.notes)
    held.notes.asks = Next.READ
    client.send(b"largepost1post2")
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(attend, held)
    await trio.testing.wait_all_tasks_blocked()
    assert held.notes.heard == [b"first", b"large"]
    assert await held.takes(5 + LARGE + 10) == b"first" + CONTENT + b"post1post2"
    assert not held.over


async def test_the_last_piece_of_an_answer_in_pieces_leaves_at_once(server: Server, nursery: trio.Nursery) -> None:
    """Whoever has held the packets back until then."""
    stream, client = await server.connect()
    held = Held(stream, client, Notes(stream), [])
    stream._sending.cork(True)
    await asks(held, nursery, [b"trailer"])
    assert await held.takes(7) == b"trailer"
    assert stream._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK) == 0


async def test_it_happens_again(held: Held) -> None:
    for _ in range(3):
        assert await held.takes() == CONTENT
        held.client.send(b"large")
    assert await held.takes() == CONTENT
    assert held.notes.heard == [b"large"] * 4
    assert not held.over


@pytest.mark.parametrize("size", [SENDFILE_BYTES // 2, SENDFILE_BYTES, 3 * SENDFILE_BYTES, LARGE])
async def test_slices_and_what_stands_between_them(
    server: Server, nursery: trio.Nursery, open_file: Callable[[bytes], PlainFile], size: int
) -> None:
    """Also where more than is sent at once would fit."""
    file = cast(File, open_file(CONTENT))
    stream, client = await server.connect()
    held = Held(stream, client, Notes(stream), [])
    part = FileSlice(file, LARGE - size, size)
    await asks(held, nursery, [b"header", part, b"between", part, b"trailer"])
    content = CONTENT[LARGE - size :]
    whole = b"header" + content + b"between" + content + b"trailer"
    if file.fileno() is None and held.over:  # it must be read, which its task does
        nursery.start_soon(stream.send, [])
    assert await held.takes(len(whole)) == whole
    await trio.testing.wait_all_tasks_blocked()
    assert held.over == ([] if file.fileno() is not None else [None])
    assert stream._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_CORK) == 0


async def test_what_is_answered_meanwhile_comes_behind_it(held: Held) -> None:
    """To what came before, and was waited with."""
    held.notes.answers = lambda data: [b"late"]
    held.stream.resume()
    await until(lambda: held.notes.resumes)
    assert await held.takes(LARGE + 4) == CONTENT + b"late"
    assert held.notes.heard == [b"large"]


async def test_who_takes_long_when_called_back_is_still_told_of_room(held: Held) -> None:
    """And has nothing to send, which would have it look for room."""
    assert await held.takes(LARGE // 4) == CONTENT[: LARGE // 4]
    await until(lambda: held.stream.held_up)

    def slowly(_: bytes) -> tuple[()]:
        time.sleep(2 * TURN_SECONDS)
        return ()

    held.notes.answers = slowly
    held.stream.resume()
    await until(lambda: held.notes.resumes)
    assert await held.takes(LARGE - LARGE // 4) == CONTENT[LARGE // 4 :]
    assert held.notes.heard == [b"large"]


async def test_who_waits_is_not_asked_for_more_when_all_is_sent(server: Server, nursery: trio.Nursery) -> None:
    stream, client = await server.connect()
    held = Held(stream, client, Notes(stream), [])
    held.notes.asks = Next.WAIT
    await asks(held, nursery, [CONTENT])
    client.send(b"next")
    assert await held.takes() == CONTENT
    await trio.testing.wait_all_tasks_blocked()
    assert held.notes.heard == [b"large"]
    held.notes.asks = Next.READ
    stream.resume()
    assert await held.takes(4) == b"next"


async def test_who_leaves_sends_the_rest_in_its_task(held: Held, nursery: trio.Nursery) -> None:
    held.notes.asks = Next.LEAVE
    held.stream.resume()
    await until(lambda: held.over)
    assert held.over == [None]
    assert held.stream.unsent
    nursery.start_soon(held.stream.send, [b"end"])
    assert await held.takes(LARGE + 3) == CONTENT + b"end"
    held.notes.asks = Next.READ
    nursery.start_soon(attend, held)
    held.client.send(b"again")
    assert await held.takes(5) == b"again"


@pytest.mark.plain
async def test_once_it_has_left_room_is_not_told_to_it(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    held.notes.asks = Next.LEAVE
    held.stream.resume()
    await until(lambda: held.over)
    monkeypatch.setattr(held.stream, "ready", None)  # to be called would fail
    seat = held.stream._seat
    seat.promising = False
    await has_come(held.client, held.stream.sent)
    await trio.testing.wait_all_tasks_blocked()
    assert not seat.promising


async def test_whose_task_gives_up_meanwhile_may_go_on_by_itself(server: Server, nursery: trio.Nursery) -> None:
    stream, client = await server.connect()
    notes = Notes(stream)
    notes.answers = lambda data: [CONTENT]
    async with trio.open_nursery() as attending:
        attending.start_soon(stream.attend, notes)
        client.send(b"large")
        await until(lambda: notes.heard)
        await trio.testing.wait_all_tasks_blocked()
        attending.cancel_scope.cancel()
    nursery.start_soon(stream.send, [])
    assert await has_come(client, LARGE) == CONTENT
    notes.answers = lambda data: [data]
    nursery.start_soon(stream.attend, notes)
    await trio.testing.wait_all_tasks_blocked()
    client.send(b"next")
    assert await has_come(client, 4) == b"next"


async def test_a_client_that_has_gone(held: Held) -> None:
    reset(held.client)
    await until(lambda: held.over)
    assert held.over[0]


async def test_a_client_that_sends_no_more_gets_the_rest(held: Held) -> None:
    held.client.shutdown(socket.SHUT_WR)
    await trio.testing.wait_all_tasks_blocked()
    assert held.notes.heard == [b"large"]
    assert await held.takes() == CONTENT
    await until(lambda: held.over)
    assert held.notes.ended
    assert held.over == [None]


async def test_it_is_closed_meanwhile(held: Held) -> None:
    held.stream.close()
    await until(lambda: held.over)
    assert held.over == ["this side was closed"]


async def test_others_are_served_while_many_are_held_up(
    server: Server, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowds, "PASS_SECONDS", -1.0)
    all_held = []
    for _ in range(10):
        stream, client = await server.connect()
        held = Held(stream, client, Notes(stream), [])
        await asks(held, nursery, [CONTENT])
        all_held.append(held)
    stream, client = await server.connect()
    quick = Held(stream, client, Notes(stream), [])
    quick.notes.answers = lambda data: [data]
    nursery.start_soon(attend, quick)
    for _ in range(20):
        client.send(b"x")
        assert await quick.takes(1) == b"x"
    taken: list[bytes] = []

    async def take(held: Held) -> None:
        taken.append(await held.takes())

    for held in all_held:
        nursery.start_soon(take, held)
    while len(taken) < len(all_held):
        client.send(b"x")
        assert await quick.takes(1) == b"x"
    assert taken == [CONTENT] * len(all_held)
    assert not any(held.over for held in (*all_held, quick))
