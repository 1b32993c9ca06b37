"""What who attends a stream answers is sent, in order and whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
import trio
import trio.testing

from kwire.ports.attending import Next
from kwire.ports.files import File, FileSlice
from tests.ports.attending.ends import Ends
from tests.ports.streams import LARGE, Notes, PlainFile, pattern, read_exactly, until


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
