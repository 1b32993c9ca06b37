"""Streams of real sockets that wait until they are resumed: by a task, or by what another stream has received."""

from __future__ import annotations

from functools import partial

import pytest
import trio
import trio.testing

from kwire.ports.attending import Next
from kwire.ports.transport import Part, StreamClosed
from tests.ports.streams import Notes, Passes, Server, has_come, until

STREAMS = 40


async def test_who_is_resumed_by_another_task_is_called_soon(server: Server, nursery: trio.Nursery) -> None:
    stream, client = await server.connect()
    notes = Notes(stream)
    notes.asks = Next.WAIT
    nursery.start_soon(stream.attend, notes)
    client.send(b"a")
    await until(lambda: notes.heard)
    await trio.testing.wait_all_tasks_blocked()
    notes.answers = lambda data: [b"late"]
    stream.resume()
    assert (notes.resumes, stream.sent) == (0, 0), "not in the midst of what that task does"
    for _ in range(2):
        await trio.lowlevel.checkpoint()
    assert (notes.resumes, stream.sent) == (1, 4)
    assert await has_come(client, 4) == b"late"


@pytest.mark.usefixtures("long_passes")
async def test_many_are_resumed_at_once_by_another_task(server: Server, nursery: trio.Nursery) -> None:
    """And all answers leave when the last one is there."""
    all_notes, sent_by_then = [], []

    def answers(number: int, data: bytes) -> list[Part]:
        if data:
            return []
        sent_by_then.append(sum(stream.sent for stream in server.accepted))
        return [b"late%02d" % number]

    for number in range(STREAMS):
        stream, client = await server.connect()
        notes = Notes(stream)
        notes.asks = Next.WAIT
        notes.answers = partial(answers, number)
        nursery.start_soon(stream.attend, notes)
        client.send(b"a")
        all_notes.append(notes)
    for turn in range(1, 4):
        await until(lambda: all(notes.heard for notes in all_notes))
        await trio.testing.wait_all_tasks_blocked()
        sent_by_then.clear()
        for notes in all_notes:
            notes.stream.resume()
        for number, client in enumerate(server.clients):
            assert await has_come(client, 6) == b"late%02d" % number
        assert {notes.resumes for notes in all_notes} == {turn}
        assert set(sent_by_then) == {(turn - 1) * STREAMS * 6}


async def test_who_is_resumed_and_closed_is_not_called(server: Server) -> None:
    """As it is with a connection whose request is told to be quick since the connection ends."""
    all_notes: list[Notes] = []
    failures: list[str] = []

    async def attend(notes: Notes) -> None:
        with pytest.raises(StreamClosed) as failure:
            await notes.stream.attend(notes)
        failures.append(str(failure.value))

    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            for number in range(STREAMS):
                stream, client = await server.connect()
                notes = Notes(stream)
                notes.asks = Next.WAIT if number % 2 else Next.READ
                all_notes.append(notes)
                attending.start_soon(attend, notes)
                client.send(b"a")
            await until(lambda: all(notes.heard for notes in all_notes))
            for number, notes in enumerate(all_notes):
                actions = (notes.stream.close, notes.stream.resume)
                for act in actions if number % 4 < 2 else reversed(actions):
                    act()
    assert failures == ["this side was closed"] * STREAMS
    assert {notes.resumes for notes in all_notes} == {0}


@pytest.mark.usefixtures("long_passes")
async def test_who_is_resumed_by_another_stream_answers_in_the_same_pass(server: Server, nursery: trio.Nursery) -> None:
    """A consumer is told of what a producer has sent. And so on: what it does then may resume a third one."""
    pairs = [await server.connect() for _ in range(3)]
    streams = [stream for stream, _ in pairs]
    waiting = [Notes(stream) for stream in streams[:2]]
    for notes in waiting:
        notes.asks = Next.WAIT
    producer = Notes(streams[2])
    order: list[object] = []

    def produced(data: bytes) -> list[Part]:
        passes.seen.clear()
        streams[0].resume()
        order.append("producer")
        return [b"produced"]

    def told_first(data: bytes) -> list[Part]:
        if data:
            return []
        streams[1].resume()
        order.append("first")
        return [b"first"]

    def told_second(data: bytes) -> list[Part]:
        if data:
            return []
        order.append("second")
        return [b"second"]

    waiting[0].answers, waiting[1].answers, producer.answers = told_first, told_second, produced
    for notes in (*waiting, producer):
        nursery.start_soon(notes.stream.attend, notes)
    for _, client in pairs[:2]:
        client.send(b"fetch")
    await until(lambda: all(notes.heard for notes in waiting))
    await trio.testing.wait_all_tasks_blocked()
    passes = Passes(lambda: (list(order), [stream.sent for stream in streams]))
    trio.lowlevel.add_instrument(passes)
    pairs[2][1].send(b"produce")
    assert await has_come(pairs[1][1], 6) == b"second"
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.remove_instrument(passes)
    assert passes.seen[0] == (["producer", "first", "second"], [5, 6, 8])


async def test_a_stream_is_resumed_for_who_attends_it_then(server: Server, nursery: trio.Nursery) -> None:
    """Not for who comes later."""
    stream, client = await server.connect()
    notes = Notes(stream)
    notes.asks = Next.WAIT
    stream.resume()
    client.send(b"a")
    async with trio.open_nursery() as attending:
        attending.start_soon(stream.attend, notes)
        await until(lambda: notes.heard)
        await trio.testing.wait_all_tasks_blocked()
        attending.cancel_scope.cancel()
    stream.resume()
    nursery.start_soon(stream.attend, notes)
    client.send(b"b")
    await until(lambda: notes.heard == [b"a", b"b"])
    await trio.testing.wait_all_tasks_blocked()
    assert notes.resumes == 0


async def test_who_reads_may_be_resumed_and_leave(server: Server) -> None:
    """It was resumed for something that is over by now."""
    stream, client = await server.connect()
    notes = Notes(stream)
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            attending.start_soon(stream.attend, notes)
            await trio.testing.wait_all_tasks_blocked()
            stream.resume()
            await until(lambda: notes.resumes == 1)
            client.send(b"a")
            await until(lambda: notes.heard == [b"a"])
            notes.asks = Next.LEAVE
            stream.resume()
        client.send(b"b")
        assert await stream.receive(10) == b"b"


@pytest.mark.parametrize("owed", [0, 8_000_000])
async def test_who_reads_may_be_resumed_and_send(server: Server, nursery: trio.Nursery, owed: int) -> None:
    """More than goes at once, too."""
    stream, client = await server.connect()
    notes = Notes(stream)
    notes.answers = lambda data: [b"resumed", bytes(owed)] if not data else [data]
    nursery.start_soon(stream.attend, notes)
    await trio.testing.wait_all_tasks_blocked()
    stream.resume()
    assert await has_come(client, 7 + owed) == b"resumed" + bytes(owed)
    client.send(b"a")
    assert await has_come(client, 1) == b"a"
