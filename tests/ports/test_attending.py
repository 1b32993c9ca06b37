"""Who is called with what a stream receives: the same tests however the stream is attended."""

from __future__ import annotations

import errno
import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, cast

import pytest
import trio
import trio.testing

from kwire.ports import crowd as crowds
from kwire.ports.attending import Next
from kwire.ports.files import File, FileSlice
from kwire.ports.memory_transport import MemoryNetwork, MemoryStream
from kwire.ports.tcp import TcpTransport
from kwire.ports.tcp_stream import TcpStream
from kwire.ports.transport import Stream, StreamClosed, Transport
from tests.ports.streams import LARGE, Notes, PlainFile, pattern, read_exactly, reset, until


class Ends(NamedTuple):
    mine: Stream
    """The one that is attended."""
    theirs: Stream
    called: bool
    """Whether no task is woken for a call."""

    async def attend(self, notes: Notes) -> None:
        """Until the end of the stream."""
        while not notes.ended:
            await self.mine.attend(notes)
            await self.mine.send([])


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no room")


@pytest.fixture(params=["crowd", "no room", "task", "memory"])
async def ends(
    request: pytest.FixtureRequest, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Ends]:
    """Called by the crowd; or by a task: the crowd has no room, there is none, or there are no sockets."""
    how = request.param
    if how == "no room":
        monkeypatch.setattr(crowds.Crowd, "join", full)
    transport: Transport = TcpTransport() if how != "memory" else MemoryNetwork().transport("here")
    accepted: list[Stream] = []

    async def keep(stream: Stream) -> None:
        accepted.append(stream)
        await trio.sleep_forever()

    listener = await transport.listen("127.0.0.1", 0)
    nursery.start_soon(listener.serve, keep)
    connected = await transport.connect(listener.host, listener.port)
    await until(lambda: accepted)
    mine, theirs = accepted[0], connected
    if how == "task":
        mine, theirs = theirs, mine
    yield Ends(mine, theirs, how == "crowd")
    mine.close()
    theirs.close()
    nursery.cancel_scope.cancel()


async def fails(operation: Callable[[], Awaitable[object]], failures: list[str]) -> None:
    with pytest.raises(StreamClosed) as failure:
        await operation()
    failures.append(str(failure.value))


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


async def test_answers_arrive_in_order(ends: Ends, nursery: trio.Nursery) -> None:
    notes = Notes(ends.mine, wanted=1)
    notes.answers = lambda data: [b"<", bytearray(data), memoryview(data), b"", b">"]
    nursery.start_soon(ends.attend, notes)
    await ends.theirs.send([b"abc"])
    with trio.fail_after(5):
        assert await read_exactly(ends.theirs, 12) == b"<aa><bb><cc>"
        notes.answers = lambda data: [data]
        await ends.theirs.send([b"d"])
        assert await read_exactly(ends.theirs, 1) == b"d"
    assert not ends.mine.unsent
    assert ends.mine.sent == 13


async def test_who_was_resumed_may_answer_and_then_does_read(ends: Ends, nursery: trio.Nursery) -> None:
    notes = Notes(ends.mine)
    notes.asks = Next.WAIT
    nursery.start_soon(ends.attend, notes)
    await ends.theirs.send([b"a"])
    await until(lambda: notes.heard)
    notes.asks = Next.READ
    notes.answers = lambda data: [b"late"] if not data else [data]
    ends.mine.resume()
    with trio.fail_after(5):
        assert await read_exactly(ends.theirs, 4) == b"late"
        await ends.theirs.send([b"b"])
        assert await read_exactly(ends.theirs, 1) == b"b"


async def test_what_who_leaves_has_sent_arrives_before_what_its_task_sends(ends: Ends) -> None:
    notes = Notes(ends.mine)
    notes.asks = Next.LEAVE
    notes.answers = lambda data: [data, b" one "]
    await ends.theirs.send([b"a"])
    with trio.fail_after(5):
        await ends.mine.attend(notes)
        await ends.mine.send([b"two"])
        assert await read_exactly(ends.theirs, 9) == b"a one two"


@pytest.mark.parametrize("size", [100, LARGE])
async def test_file_slices_among_answers(
    ends: Ends, nursery: trio.Nursery, open_file: Callable[[bytes], PlainFile], size: int
) -> None:
    content = pattern(size + 2000)
    file = cast(File, open_file(content))
    expected = b"header" + content[1000 : 1000 + size] + b"between" + content[:10] + b"trailer"
    notes = Notes(ends.mine)
    notes.answers = lambda data: [
        b"header",
        FileSlice(file, 1000, size),
        b"between",
        FileSlice(file, 0, 10),
        FileSlice(file, 5, 0),
        b"trailer",
    ]
    nursery.start_soon(ends.attend, notes)
    with trio.fail_after(20):
        for _ in range(2):
            await ends.theirs.send([b"x"])
            assert await read_exactly(ends.theirs, len(expected)) == expected


async def test_more_than_goes_at_once_arrives_whole_and_before_what_comes_later(ends: Ends) -> None:
    """From a receiver that leaves."""
    content = pattern(LARGE)
    notes = Notes(ends.mine)
    notes.asks = Next.LEAVE
    notes.answers = lambda data: [content[: LARGE // 3], content[LARGE // 3 :], b"end"]

    async def attend() -> None:
        await ends.mine.attend(notes)
        assert ends.mine.unsent
        await ends.mine.send([b"task"])
        assert not ends.mine.unsent

    await ends.theirs.send([b"x"])
    with trio.fail_after(20):
        async with trio.open_nursery() as attending:
            attending.start_soon(attend)
            assert await read_exactly(ends.theirs, LARGE + 7) == content + b"endtask"


async def test_what_was_left_to_the_stream_before_is_sent_by_who_is_attended(ends: Ends, nursery: trio.Nursery) -> None:
    """Though nothing comes meanwhile."""
    content, notes = pattern(LARGE), Notes(ends.mine)
    ends.mine.send_soon([content, b"end"])
    nursery.start_soon(ends.attend, notes)
    with trio.fail_after(20):
        assert await read_exactly(ends.theirs, LARGE + 3) == content + b"end"
        await ends.theirs.send([b"next"])
        await until(lambda: notes.content == b"next")


@pytest.mark.parametrize("size", [200_000, LARGE])
@pytest.mark.parametrize("waits", [False, True])
async def test_more_than_goes_at_once_arrives_whole_from_who_reads_on(
    ends: Ends, nursery: trio.Nursery, size: int, waits: bool
) -> None:
    """Or waits: it is resumed nevertheless."""
    content = pattern(size)
    notes = Notes(ends.mine)
    notes.answers = lambda data: [content, data] if data else ()
    with trio.fail_after(20):
        for data in (b"a", b"b"):
            async with trio.open_nursery() as attending:
                notes.asks = Next.WAIT if waits else Next.READ
                attending.start_soon(ends.attend, notes)
                await ends.theirs.send([data])
                await until(lambda data=data: notes.heard[-1:] == [data])
                await trio.testing.wait_all_tasks_blocked()
                notes.asks = Next.READ
                ends.mine.resume()
                assert await read_exactly(ends.theirs, size + 1) == content + data
                attending.cancel_scope.cancel()


class Slow:
    """A part that is there when the test says so."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.there = trio.Event()

    def __len__(self) -> int:
        return len(self.data)

    async def read_from(self, start: int) -> bytes:
        await self.there.wait()
        return self.data[start : start + 2]


async def test_a_part_that_comes_while_it_is_sent(ends: Ends, nursery: trio.Nursery) -> None:
    slow = Slow(b"slow")
    notes = Notes(ends.mine)
    notes.answers = lambda data: [b"before ", slow, b" after"]
    nursery.start_soon(ends.attend, notes)
    await ends.theirs.send([b"x"])
    with trio.fail_after(5):
        assert await read_exactly(ends.theirs, 7) == b"before "
        await trio.testing.wait_all_tasks_blocked()
        slow.there.set()
        assert await read_exactly(ends.theirs, 10) == b"slow after"


async def test_more_answers_than_one_system_call_takes(ends: Ends, nursery: trio.Nursery) -> None:
    buffers = [number.to_bytes(4, "big") for number in range(5000)]
    notes = Notes(ends.mine)
    notes.answers = lambda data: buffers
    nursery.start_soon(ends.attend, notes)
    await ends.theirs.send([b"x"])
    with trio.fail_after(5):
        assert await read_exactly(ends.theirs, 20_000) == b"".join(buffers)


@pytest.mark.parametrize("size", [0, 99])
async def test_a_file_shorter_than_its_slice_ends_the_stream(
    ends: Ends, open_file: Callable[[bytes], PlainFile], size: int
) -> None:
    file = cast(File, open_file(pattern(size)))
    notes, failures = Notes(ends.mine), []
    notes.answers = lambda data: [b"header", FileSlice(file, 0, 100)]
    await ends.theirs.send([b"x"])
    with trio.fail_after(5):
        await fails(lambda: ends.attend(notes), failures)
        await fails(lambda: ends.mine.send([b"the rest of the torn frame"]), failures)
    assert "ends before byte" in failures[0]
    assert "did not finish" in failures[1]


@pytest.mark.parametrize("asks", list(Next)[:2])
async def test_closing_wakes_who_attends(ends: Ends, asks: Next) -> None:
    notes, failures = Notes(ends.mine), []
    notes.asks = asks
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            attending.start_soon(fails, lambda: ends.mine.attend(notes), failures)
            await ends.theirs.send([b"a"])
            await until(lambda: notes.heard)
            await trio.testing.wait_all_tasks_blocked()
            ends.mine.close()
        await fails(lambda: ends.mine.attend(notes), failures)
    assert (notes.heard, notes.resumes) == ([b"a"], 0)
    assert failures[0] == "this side was closed"


def break_off(stream: Stream) -> None:
    if isinstance(stream, MemoryStream):
        stream.break_both_ends()
    else:
        reset(cast(TcpStream, stream)._socket)


async def test_a_reset_ends_it(ends: Ends) -> None:
    notes, failures = Notes(ends.mine), []
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            attending.start_soon(fails, lambda: ends.mine.attend(notes), failures)
            await ends.theirs.send([b"a"])
            await until(lambda: notes.heard)
            await trio.testing.wait_all_tasks_blocked()
            break_off(ends.theirs)
        await fails(lambda: ends.mine.send([b"x"]), failures)
    assert notes.heard == [b"a"]
    assert "reset" in failures[0]


@pytest.mark.parametrize("answers", [False, True])
async def test_a_reset_while_it_waits_ends_it_when_it_goes_on(ends: Ends, answers: bool) -> None:
    """Whether it sends then, or reads."""
    notes, failures = Notes(ends.mine), []
    notes.asks = Next.WAIT
    if answers:
        notes.answers = lambda data: [b"late"] if not data else ()
    await ends.theirs.send([b"a"])
    with trio.fail_after(5):
        async with trio.open_nursery() as attending:
            attending.start_soon(fails, lambda: ends.attend(notes), failures)
            await until(lambda: notes.heard)
            break_off(ends.theirs)
            await trio.testing.wait_all_tasks_blocked()
            assert failures == []
            if not answers:
                notes.asks = Next.READ
            ends.mine.resume()
        await fails(lambda: ends.mine.send([b"x"]), failures)
    assert (notes.heard, notes.resumes) == ([b"a"], 1)


@pytest.mark.parametrize("asks", list(Next)[:2])
async def test_who_was_cancelled_may_attend_again(ends: Ends, nursery: trio.Nursery, asks: Next) -> None:
    """Nothing is told meanwhile, and nothing is lost."""
    notes = Notes(ends.mine)
    notes.asks = asks
    for number in range(1, 4):
        async with trio.open_nursery() as attending:
            attending.start_soon(ends.mine.attend, notes)
            await ends.theirs.send([b"a"])
            await until(lambda number=number: len(notes.heard) == number)
            await trio.testing.wait_all_tasks_blocked()
            attending.cancel_scope.cancel()
    notes.asks = Next.READ
    await ends.theirs.send([b"b"])
    await trio.testing.wait_all_tasks_blocked()
    assert (notes.heard, notes.resumes) == ([b"a"] * 3, 0)
    nursery.start_soon(ends.mine.attend, notes)
    await until(lambda: notes.heard[-1] == b"b")
    await ends.theirs.send([b"c"])
    await until(lambda: notes.heard[-1] == b"c")


@pytest.mark.parametrize("patient", [False, True])
async def test_what_comes_is_received_by_who_attends_no_more(ends: Ends, patient: bool) -> None:
    """Since he was cancelled, or left."""
    notes = Notes(ends.mine)
    ends.mine.patient = patient
    with trio.move_on_after(0) as scope:
        await ends.mine.attend(notes)
    assert scope.cancelled_caught
    with trio.fail_after(5):
        for _ in range(2):
            async with trio.open_nursery() as receiving:
                receiving.start_soon(hears, ends.mine, b"a")
                await trio.testing.wait_all_tasks_blocked()
                await ends.theirs.send([b"a"])
            assert notes.heard == []
            notes.asks = Next.LEAVE
            await ends.theirs.send([b"b"])
            await ends.mine.attend(notes)
            assert notes.heard.pop() == b"b"


async def hears(stream: Stream, expected: bytes) -> None:
    assert await stream.receive(10) == expected
