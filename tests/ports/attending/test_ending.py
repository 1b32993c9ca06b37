"""How it ends that a stream is attended: it fails, it is closed, its task is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
import trio
import trio.testing

from kwire.ports.attending import Next
from kwire.ports.files import File, FileSlice
from kwire.ports.memory_transport import MemoryStream
from kwire.ports.tcp_stream import TcpStream
from kwire.ports.transport import Stream
from tests.ports.attending.ends import Ends, fails
from tests.ports.streams import Notes, PlainFile, pattern, reset, until


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
