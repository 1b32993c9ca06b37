"""Who attends a stream is called with what it receives."""

from __future__ import annotations

import gc
import weakref
from contextlib import suppress
from typing import cast

import pytest
import trio
import trio.testing

from kwire.ports.attending import Next
from kwire.ports.tcp import TcpTransport
from kwire.ports.tcp_stream import TcpStream
from kwire.ports.transport import Stream, StreamClosed
from tests.ports.attending.ends import Ends
from tests.ports.streams import LARGE, Notes, pattern, read_exactly, reset, until


async def test_what_comes_is_told_in_order_and_then_the_end(ends: Ends, nursery: trio.Nursery) -> None:
    notes, content = Notes(ends.mine, wanted=1000), pattern(100_000)
    with trio.fail_after(10):
        async with trio.open_nursery() as attending:
            attending.start_soon(ends.mine.attend, notes)
            await ends.theirs.send([content[:1], content[1:60_000]])
            await until(lambda: len(notes.content) == 60_000)
            await ends.theirs.send([content[60_000:]])
            ends.theirs.close()
    assert notes.content == content
    assert [len(data) for data in notes.heard].count(0) == 1
    assert notes.ended
    assert max(len(data) for data in notes.heard) <= 1000


async def test_what_came_before_is_told_too(ends: Ends) -> None:
    await ends.theirs.send([b"early"])
    ends.theirs.close()
    await trio.testing.wait_all_tasks_blocked()
    notes = Notes(ends.mine)
    with trio.fail_after(5):
        await ends.mine.attend(notes)
    assert notes.heard == [b"early", b""]


async def test_so_much_as_is_wanted_just_then(ends: Ends, nursery: trio.Nursery) -> None:
    notes = Notes(ends.mine, wanted=2)

    def more(_: bytes) -> tuple[()]:
        notes.wanted += 1
        return ()

    notes.answers = more
    await ends.theirs.send([b"aabbbccccddddd"])
    nursery.start_soon(ends.mine.attend, notes)
    await until(lambda: len(notes.content) == 14)
    assert notes.heard == [b"aa", b"bbb", b"cccc", b"ddddd"]


async def test_it_may_be_put_where_there_is_room_for_it(ends: Ends, nursery: trio.Nursery) -> None:
    notes, content = Notes(ends.mine, wanted=3), pattern(100_000)
    place = bytearray(90_000)
    notes.room = memoryview(place)
    with trio.fail_after(10):
        async with trio.open_nursery() as attending:
            attending.start_soon(ends.attend, notes)
            await ends.theirs.send([content[:10]])
            await until(lambda: len(notes.content) == 10)
            await ends.theirs.send([content[10:]])
            ends.theirs.close()
    assert notes.content == content
    assert place == content[:90_000]
    assert max(map(len, notes.heard[-3334:])) == 3


async def test_the_end_comes_also_where_there_is_room_for_more(ends: Ends) -> None:
    notes = Notes(ends.mine)
    notes.room = memoryview(bytearray(100))
    await ends.theirs.send([b"early"])
    ends.theirs.close()
    with trio.fail_after(5):
        await ends.attend(notes)
    assert notes.heard == [b"early", b""]


@pytest.mark.parametrize("ends", ["crowd"], indirect=True)
async def test_of_a_place_it_is_told_when_it_is_full_and_then_of_each_piece(ends: Ends, nursery: trio.Nursery) -> None:
    notes = Notes(ends.mine)
    notes.room = memoryview(bytearray(90_000))
    nursery.start_soon(ends.mine.attend, notes)
    await ends.theirs.send([b"first"])
    await until(lambda: notes.heard == [b"first"])
    for come in (30_000, 60_000):
        await ends.theirs.send([bytes(30_000)])
        await until(lambda come=come: ends.mine.arrived == come)
        await trio.testing.wait_all_tasks_blocked()
        assert notes.heard == [b"first"]
    await ends.theirs.send([bytes(29_995)])
    await until(lambda: len(notes.heard) == 2)
    assert ends.mine.arrived == 0
    for piece in (b"a", b"b"):
        await ends.theirs.send([piece])
        await until(lambda piece=piece: notes.heard[-1] == piece)


@pytest.mark.parametrize("ends", ["crowd"], indirect=True)
async def test_when_the_other_side_is_gone_nothing_keeps_who_was_called(ends: Ends, nursery: trio.Nursery) -> None:
    called: list[weakref.ref[Notes]] = []
    over = trio.Event()

    async def attend() -> None:
        notes = Notes(ends.mine)
        notes.room = memoryview(bytearray(90_000))
        called.append(weakref.ref(notes))
        with suppress(StreamClosed):
            await ends.mine.attend(notes)
        over.set()

    gc.collect()
    gc.disable()
    try:
        nursery.start_soon(attend)
        await trio.testing.wait_all_tasks_blocked()
        reset(cast(TcpStream, ends.theirs)._socket)
        with trio.fail_after(5):
            await over.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert called[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("ends", ["crowd"], indirect=True)
async def test_who_is_left_amid_a_place_is_told_of_each_piece(ends: Ends) -> None:
    notes = Notes(ends.mine)
    notes.room = memoryview(bytearray(90_000))
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            attending.start_soon(ends.mine.attend, notes)
            await ends.theirs.send([b"first"])
            await until(lambda: notes.heard)
            notes.asks = Next.LEAVE
            ends.mine.resume()
        await ends.theirs.send([b"second"])
        assert await ends.mine.receive(100) == b"second"


async def test_a_place_may_be_larger_than_what_the_system_holds(nursery: trio.Nursery) -> None:
    transport, accepted, content = TcpTransport(receive_buffer_bytes=5000), [], pattern(LARGE)
    listener = await transport.listen("127.0.0.1", 0)

    async def attended(stream: Stream) -> None:
        notes = Notes(stream)
        notes.room = memoryview(bytearray(LARGE))
        accepted.append(notes)
        await stream.attend(notes)

    nursery.start_soon(listener.serve, attended)
    stream = await transport.connect(listener.host, listener.port)
    with trio.fail_after(20):
        await stream.send([content])
        stream.close()
        await until(lambda: accepted and accepted[0].ended)
    assert accepted[0].content == content
    nursery.cancel_scope.cancel()


async def test_nothing_is_told_until_it_is_resumed(ends: Ends, nursery: trio.Nursery) -> None:
    notes = Notes(ends.mine, wanted=3)
    notes.asks = Next.WAIT
    nursery.start_soon(ends.mine.attend, notes)
    await ends.theirs.send([b"abcdef"])
    await until(lambda: notes.heard)
    await ends.theirs.send([b"gh"])
    await trio.testing.wait_all_tasks_blocked()
    assert notes.heard == [b"abc"]
    for resumes in (1, 2):  # it may be that it has to wait for something else
        ends.mine.resume()
        await trio.testing.wait_all_tasks_blocked()
        assert (notes.resumes, notes.heard) == (resumes, [b"abc"])
    notes.asks = Next.READ
    ends.mine.resume()
    await until(lambda: len(notes.content) == 8)
    assert notes.heard == [b"abc", b"def", b"gh"]
    assert notes.resumes == 3
    await ends.theirs.send([b"i"])
    await until(lambda: notes.heard[-1] == b"i")


async def test_the_end_that_came_while_it_waited_is_told_when_it_reads_again(ends: Ends, nursery: trio.Nursery) -> None:
    notes = Notes(ends.mine)
    notes.asks = Next.WAIT
    await ends.theirs.send([b"a"])
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            attending.start_soon(ends.mine.attend, notes)
            await until(lambda: notes.heard)
            ends.theirs.close()
            await trio.testing.wait_all_tasks_blocked()
            assert notes.heard == [b"a"]
            notes.asks = Next.READ
            ends.mine.resume()
    assert notes.heard == [b"a", b""]


async def test_who_waits_again_and_again_is_resumed_each_time(ends: Ends, nursery: trio.Nursery) -> None:
    notes = Notes(ends.mine)
    nursery.start_soon(ends.mine.attend, notes)
    for number in range(1, 50):
        notes.asks = Next.WAIT
        await ends.theirs.send([b"x"])
        await until(lambda number=number: len(notes.heard) == number)
        notes.asks = Next.READ
        ends.mine.resume()
        await until(lambda number=number: notes.resumes == number)


async def test_to_resume_a_stream_that_nobody_attends_harms_nothing(ends: Ends) -> None:
    ends.mine.resume()
    await ends.theirs.send([b"a"])
    assert await ends.mine.receive(10) == b"a"
    notes = Notes(ends.mine)
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            attending.start_soon(ends.mine.attend, notes)
            await ends.theirs.send([b"b"])
            await until(lambda: notes.heard == [b"b"])
            ends.theirs.close()
        ends.mine.close()
        ends.mine.resume()
        await trio.testing.wait_all_tasks_blocked()
    assert (notes.heard, notes.resumes) == ([b"b", b""], 0)


async def test_who_leaves_is_told_nothing_more(ends: Ends) -> None:
    notes = Notes(ends.mine, wanted=3)
    notes.asks = Next.LEAVE
    await ends.theirs.send([b"abcdef"])
    with trio.fail_after(5):
        await ends.mine.attend(notes)
        assert notes.heard == [b"abc"]
        ends.mine.resume()
        await ends.theirs.send([b"gh"])
        await trio.testing.wait_all_tasks_blocked()
        assert (notes.heard, notes.resumes) == ([b"abc"], 0)
        assert await read_exactly(ends.mine, 5) == b"defgh"


async def test_who_left_may_attend_again(ends: Ends) -> None:
    """Whether something comes before, or only then; with or without receiving in between."""
    notes = Notes(ends.mine, wanted=3)
    notes.asks = Next.LEAVE
    with trio.fail_after(5):
        await ends.theirs.send([b"abcdef"])
        await ends.mine.attend(notes)
        await ends.mine.attend(notes)
        assert notes.heard == [b"abc", b"def"]
        for received in (False, True):
            if received:
                await ends.theirs.send([b"received"])
                assert await ends.mine.receive(100) == b"received"
            await ends.theirs.send([b"1"])
            await trio.testing.wait_all_tasks_blocked()
            await ends.mine.attend(notes)
            async with trio.open_nursery() as attending:
                attending.start_soon(ends.mine.attend, notes)
                await trio.testing.wait_all_tasks_blocked()
                await ends.theirs.send([b"2"])
    assert notes.heard == [b"abc", b"def", b"1", b"2", b"1", b"2"]


async def test_one_that_is_resumed_may_leave(ends: Ends) -> None:
    notes = Notes(ends.mine)
    notes.asks = Next.WAIT
    await ends.theirs.send([b"a"])
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            attending.start_soon(ends.mine.attend, notes)
            await until(lambda: notes.heard)
            notes.asks = Next.LEAVE
            ends.mine.resume()
        await ends.theirs.send([b"b"])
        assert await ends.mine.receive(10) == b"b"
    assert (notes.heard, notes.resumes) == ([b"a"], 1)
