"""One flush of a log at a time: who comes while one is under way shares the next.

    appends        a   b c d        e f
    flush 1        |---a---|
    flush 2                |-- b c d --|
    flush 3                            |-- e f --|

So the number of fsyncs does not grow with the number of producers. What an append waits for is a flush that began after
it was written: one that was under way already may have passed it by. A flush that failed is not repeated: what the
system then says of the file means nothing any more, and the log dir goes offline.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from kwire.storage import flushing

if TYPE_CHECKING:
    from kwire.storage.log import Log


class _Round:
    """One flush, from the first who asks for it to its end."""

    __slots__ = ("ended", "error", "first_offset", "offset")

    def __init__(self) -> None:
        self.offset = 0
        """It is to bring the log up to here (exclusive) onto the disk."""
        self.first_offset: int | None = None
        """Where the first of the appends begins that wait for it."""
        self.error: OSError | None = OSError(errno.EIO, "the flush did not come to its end")
        """None once it has succeeded: whatever else ends it, nobody who waits takes it for done."""
        self.ended = trio.Event()


class GroupCommit:
    """The flushes of one log, which has this and is told with each: no cycle keeps what was deleted. For the event
    loop's thread."""

    __slots__ = ("_failure", "_holder", "_next", "_released", "_under_way")

    def __init__(self) -> None:
        self._under_way: _Round | None = None
        self._next: _Round | None = None
        self._failure: OSError | None = None
        self._released: trio.Event | None = None
        """While flushes are held: set when they may go on."""
        self._holder = trio.Lock()

    @property
    def first_waiting(self) -> int | None:
        """Where the first append begins that waits for a flush."""
        waiting = [
            turn.first_offset
            for turn in (self._under_way, self._next)
            if turn is not None and turn.first_offset is not None
        ]
        return min(waiting, default=None)

    async def flush(self, log: Log, offset: int, first_offset: int | None = None) -> None:
        """Returns when `log` is on the disk up to `offset` (exclusive). Raises OSError.

        `first_offset`: where the append begins that waits for this.
        """
        turn = self._next
        leads = turn is None
        if turn is None:
            turn = self._next = _Round()
        turn.offset = max(turn.offset, offset)
        if first_offset is not None and (turn.first_offset is None or first_offset < turn.first_offset):
            turn.first_offset = first_offset
        if leads:
            with trio.CancelScope(shield=True):  # the others depend on it
                await self._lead(log, turn)
        else:
            await turn.ended.wait()
        if turn.error is not None:
            raise turn.error

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """While this is entered no flush is under way: who asks for one waits. One holds them at a time."""
        async with self._holder:
            released = self._released = trio.Event()
            try:
                if self._under_way is not None:
                    await self._under_way.ended.wait()
                yield
            finally:
                self._released = None
                released.set()

    async def _lead(self, log: Log, turn: _Round) -> None:
        while True:
            if self._released is not None:
                await self._released.wait()
            elif self._under_way is not None:
                await self._under_way.ended.wait()
            else:
                break
        self._under_way, self._next = turn, None
        try:
            if self._failure is not None:
                raise self._failure
            folder = None
            while folder != log.dir and not log.deleted:  # again where it moved: its files are others now
                folder = log.dir
                work, done = flushing.flush_up_to(log, turn.offset)
                await log.services.executor.run(work)
                done()
            turn.error = None
        except OSError as error:
            turn.error = self._failure = error
        finally:
            self._under_way = None
            turn.ended.set()
