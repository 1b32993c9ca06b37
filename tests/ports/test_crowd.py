"""Where many can read at once, a few are woken in each pass of the event loop, in the order in which they could."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterator
from itertools import pairwise

import pytest
import trio
import trio.testing

from kwire.ports import crowd as crowds
from kwire.ports import open_crowd as opening
from kwire.ports.crowd import AT_ONCE, BUSY_PER_SECOND, MANY
from kwire.ports.open_crowd import open_crowd
from kwire.ports.seats import Alone, Seat
from kwire.ports.tcp import TcpTransport
from kwire.ports.transport import Stream, StreamClosed

PATIENT = 5 * AT_ONCE


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    pairs = [socket.socketpair() for _ in range(PATIENT)]
    for mine, _ in pairs:
        mine.setblocking(False)  # who is woken in vain fails, instead of hanging
    yield pairs
    for pair in pairs:
        for end in pair:
            end.close()


async def test_a_few_in_each_pass_and_who_could_read_first_comes_first(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    woken: list[int] = []

    async def wait(seat: Seat, number: int) -> None:
        await seat.wait(patient=True)
        woken.append(number)

    order = [*range(1, PATIENT, 2), *range(0, PATIENT, 2)]
    async with open_crowd() as seat, trio.open_nursery() as nursery:
        for number in range(PATIENT):
            nursery.start_soon(wait, seat(pairs[number][0].fileno()), number)
        await trio.testing.wait_all_tasks_blocked()
        for number in order:
            pairs[number][1].send(b"x")
        passes = 0
        with trio.fail_after(10):
            while len(woken) < PATIENT:
                await trio.lowlevel.checkpoint()
                passes += 1
                assert len(woken) <= passes * AT_ONCE
    for start in range(0, PATIENT, AT_ONCE):  # the tasks of one pass run in any order
        assert sorted(woken[start : start + AT_ONCE]) == sorted(order[start : start + AT_ONCE])


async def test_those_in_the_queue_who_gave_up_keep_nobody_waiting(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    """Though there are more of them than are woken in a pass, and nothing else happens."""
    woken: list[int] = []

    async def wait(seat: Seat, number: int) -> None:
        await seat.wait(patient=True)
        woken.append(number)
        giving_up.cancel_scope.cancel()

    async with open_crowd() as seat:
        with trio.fail_after(10):
            async with trio.open_nursery() as staying, trio.open_nursery() as giving_up:
                for number in range(PATIENT - 1):
                    giving_up.start_soon(wait, seat(pairs[number][0].fileno()), number)
                staying.start_soon(wait, seat(pairs[PATIENT - 1][0].fileno()), PATIENT - 1)
                await trio.testing.wait_all_tasks_blocked()
                for _, other in pairs:
                    other.send(b"x")
    assert woken[-1] == PATIENT - 1
    assert len(woken) == AT_ONCE + 1


async def test_a_place_in_the_queue_is_had_once(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    """However often something comes meanwhile."""
    woken = [0] * PATIENT

    async def wait(seat: Seat, number: int) -> None:
        mine, _ = pairs[number]
        while True:
            await seat.wait(patient=True)
            woken[number] += 1
            assert mine.recv(100)
            seat.received(all_of_it=True)

    async with open_crowd() as seat, trio.open_nursery() as nursery:
        for number in range(PATIENT):
            nursery.start_soon(wait, seat(pairs[number][0].fileno()), number)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(PATIENT // AT_ONCE):
            for _, other in pairs:
                other.send(b"x")
            await trio.lowlevel.checkpoint()
        with trio.fail_after(10):
            await trio.testing.wait_all_tasks_blocked()
            while 0 in woken:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


async def test_who_always_has_more_to_read_keeps_to_the_queue(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    received = 0

    async def wait(seat: Seat, mine: socket.socket) -> None:
        nonlocal received
        while True:
            await seat.wait(patient=True)
            mine.recv(1)
            received += 1
            seat.received(all_of_it=False)

    async with open_crowd() as seat, trio.open_nursery() as nursery:
        for mine, other in pairs:
            other.send(bytes(1000))
            nursery.start_soon(wait, seat(mine.fileno()), mine)
        for passes in range(1, 40):
            await trio.lowlevel.checkpoint()
            assert received <= passes * AT_ONCE
        assert received > PATIENT
        nursery.cancel_scope.cancel()


@pytest.mark.plain
async def test_where_the_crowd_has_no_room_one_waits_alone(
    pairs: list[tuple[socket.socket, socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(crowds.Crowd, "join", full)
    mine, other = pairs[0]
    async with open_crowd() as seat:
        waiting = seat(mine.fileno())
        other.send(b"x")
        with trio.fail_after(5):
            await waiting.wait(patient=True)
        assert waiting.promising


async def test_two_can_not_wait_in_one_seat(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    async with open_crowd() as seat, trio.open_nursery() as nursery:
        waiting = seat(pairs[0][0].fileno())
        nursery.start_soon(lambda: waiting.wait(patient=True))
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(5), pytest.raises(trio.BusyResourceError):
            await waiting.wait(patient=True)
        nursery.cancel_scope.cancel()


async def test_who_does_not_wait_any_more_is_not_woken(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    mine, other = pairs[0]
    async with open_crowd() as seat:
        waiting = seat(mine.fileno())
        for patient in (True, False):
            with trio.move_on_after(0.01) as scope:
                await waiting.wait(patient=patient)
            assert scope.cancelled_caught
            other.send(b"x")
            await trio.testing.wait_all_tasks_blocked()
            with trio.fail_after(5):
                await waiting.wait(patient=patient)
            mine.recv(100)
            waiting.promising = False


async def test_who_can_not_wait_joins_where_many_receive_and_is_woken_with_all_others(
    pairs: list[tuple[socket.socket, socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowds, "BUSY_PER_SECOND", 0.0)
    async with open_crowd() as seat:
        seats = [seat(mine.fileno()) for mine, _ in pairs]
        for number in range(3):
            async with trio.open_nursery() as nursery:
                for waiting in seats:
                    nursery.start_soon(lambda waiting=waiting: waiting.wait(patient=False))
                await trio.testing.wait_all_tasks_blocked()
                for _, other in pairs:
                    other.send(b"x")
            for (mine, _), waiting in zip(pairs, seats, strict=True):
                assert waiting.promising
                mine.recv(100)
                waiting.received(all_of_it=True)
                assert waiting.promising == (number == 0)  # nobody had received before they waited first


async def test_answers_of_one_pass_leave_together() -> None:
    """A client that waits for all of them is woken once."""
    happened: list[str] = []

    async def answer(stream: Stream) -> None:
        stream.patient = True
        while await stream.receive(100):
            happened.append("handled")
            await stream.send([b"answer"])
            happened.append("sent")

    transport = TcpTransport()
    listener = await transport.listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, answer)
        streams = [await transport.connect("127.0.0.1", listener.port) for _ in range(AT_ONCE)]
        for _ in range(3):
            await trio.testing.wait_all_tasks_blocked()
            happened.clear()
            for stream in streams:
                await stream.send([b"request"])
            with trio.fail_after(10):
                while len(happened) < 2 * AT_ONCE:
                    await trio.lowlevel.checkpoint()
            # It may be that the system does not show all of them at once.
            assert happened.count("sent") == AT_ONCE
            assert sum(two == ("handled", "sent") for two in pairwise(happened)) < AT_ONCE / 4
            for stream in streams:
                assert await stream.receive(100) == b"answer"
        nursery.cancel_scope.cancel()
    for stream in streams:
        stream.close()


async def test_who_is_alone_again_waits_alone(
    pairs: list[tuple[socket.socket, socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowds, "BUSY_PER_SECOND", 0.0)
    mine, other = pairs[0]
    async with open_crowd() as seat:
        waiting = seat(mine.fileno())
        for others, promising in ((0, True), (MANY - 1, True), (MANY, False), (0, True), (MANY, False), (0, True)):
            for _ in range(others):
                seat(pairs[1][0].fileno()).received(all_of_it=True)
            other.send(b"x")
            with trio.fail_after(5):
                await waiting.wait(patient=False)
            mine.recv(100)
            waiting.received(all_of_it=True)
            assert waiting.promising == promising


async def test_where_others_receive_now_and_then_one_waits_alone(
    pairs: list[tuple[socket.socket, socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = pairs[0]
    other.send(b"x")
    now = 100.0
    monkeypatch.setattr(crowds, "monotonic", lambda: now)
    async with open_crowd() as seat:
        waiting = seat(mine.fileno())
        for elapsed, promising in ((MANY / BUSY_PER_SECOND * 1.01, True), (MANY / BUSY_PER_SECOND * 0.99, False)):
            for _ in range(MANY):
                seat(pairs[1][0].fileno()).received(all_of_it=True)
            now += elapsed
            with trio.fail_after(5):
                await waiting.wait(patient=False)
            waiting.received(all_of_it=True)
            assert waiting.promising == promising


async def test_the_end_that_came_with_the_last_bytes_is_not_waited_for(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    mine, other = pairs[0]
    async with open_crowd() as seat:
        waiting = seat(mine.fileno())
        other.send(b"x")
        other.shutdown(socket.SHUT_WR)
        with trio.fail_after(5):
            await waiting.wait(patient=True)
            assert mine.recv(100) == b"x"
            waiting.received(all_of_it=True)
            await waiting.wait(patient=True)
            assert mine.recv(100) == b""


async def test_a_seat_that_was_left_is_not_waited_in(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    async with open_crowd() as seat:
        for left in (seat(pairs[0][0].fileno()), Alone(pairs[1][0].fileno())):
            left.leave()
            with pytest.raises(trio.ClosedResourceError):
                await left.wait(patient=False)


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
    monkeypatch.setattr(opening, "trio_loop", lambda: None)
    await test_a_patient_stream_receives_what_comes_and_the_end()


@pytest.mark.parametrize("clients", [1, 3, 40])
async def test_nothing_that_is_sent_is_missed(clients: int) -> None:
    """Chunks of any size, beside and behind each other, the last one with the end of the stream."""

    async def echo(stream: Stream) -> None:
        chosen = random.Random(stream.peer_port)
        while data := await stream.receive(chosen.choice([1, 3, 1000])):
            stream.patient = chosen.random() < 0.3
            await stream.send([data])

    async def ask(number: int) -> None:
        chosen = random.Random(number)
        stream = await trio.open_tcp_stream("127.0.0.1", listener.port)
        sent, received = bytearray(), bytearray()

        async def receive() -> None:
            async for data in stream:
                received.extend(data)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            for _ in range(50):
                data = chosen.randbytes(chosen.choice([1, 5, 2000]))
                sent += data
                await stream.send_all(data)
                if chosen.random() < 0.5:
                    await trio.testing.wait_all_tasks_blocked()
            await stream.send_eof()
        assert received == sent

    listener = await TcpTransport().listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, echo)
        with trio.fail_after(30):
            async with trio.open_nursery() as asking:
                for number in range(clients):
                    asking.start_soon(ask, number)
        listener.close()
