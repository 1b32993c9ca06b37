"""Many streams wait for something to read together: one epoll of their own, which is one file to Trio.

Trio's own wait costs a system call and a dozen Python calls each time, which is little where few are served. In the
crowd a socket is registered once (edge-triggered), and one call tells all that are ready: the busier the broker, the
less a request costs. A stream takes part while many others receive, and leaves when it is rather alone.

Trio wakes everybody who can read in the same pass, so that who comes behind a thousand others is served after all of
them. Those of the crowd that are patient form a queue instead, of which a few are woken in each pass.

Who need not be woken is called (`Called`): the one task of the crowd does at once what its streams' tasks would do one
by one, and has all answers of a pass sent when it has handled what came.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Protocol

import outcome
import trio
from trio.lowlevel import Abort, Task

AT_ONCE = 16
"""So many patient streams are woken in one pass. A request of the kind that can wait takes about a tenth of a
millisecond."""

MANY = 8
"""A stream waits in the crowd if others received so often at least since it waited last,"""

BUSY_PER_SECOND = 5000.0
"""and at this rate. What waiting in the crowd costs, all share who are ready together: for one it is more than Trio's
own wait."""

PASS_SECONDS = 0.002
"""For so long those that are called may have the event loop before other tasks get their turn."""

_TOLD = 0 if not hasattr(select, "epoll") else select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
"""What a seat in the crowd is told: each time that something comes, and the end."""

_MOST_EVENTS = 1024
"""So many streams are found ready in one pass; more in the next one."""


class Called(Protocol):
    """A stream that is called instead of being woken. None of its calls may raise, or wait."""

    def ready(self) -> None:
        """There may be something to read."""

    def resumed(self) -> None:
        """`Caller.call_soon` asked for it."""

    def push(self) -> None:
        """`Caller.push_soon` asked for it."""


class Seat(Protocol):
    """Where one stream waits, or is called."""

    joined: bool
    """Whether it waits together with others, some of which are probably served in the same pass of the event loop."""
    promising: bool
    """Whether to try and receive before waiting: there is something, or there may be, and a wait costs more. Set to
    False by who tries in vain."""

    async def wait(self, *, patient: bool) -> None:
        """Returns when there may be something to read and, if patient, the stream's turn has come.

        Raises trio.ClosedResourceError where `leave` came before or comes meanwhile.
        """

    def received(self, *, all_of_it: bool) -> None:
        """Something was received, or the end: all that was there if it was less than what was asked for (but for urgent
        data, which no Kafka client sends: what is behind them is told of with what comes next)."""

    def caller(self, stream: Called) -> Caller | None:
        """Who calls the stream from now on; None where it has to wait.

        Raises trio.ClosedResourceError where `leave` came before.
        """

    def leave(self) -> None:
        """The socket is about to be closed."""


class Caller(Protocol):
    """Calls a stream."""

    promising: bool
    """As of a seat: to be set to `ended` by who received all that was there."""
    ended: bool
    """Whether the other side sends no more."""

    async def until_let_go(self) -> None:
        """Returns after `let_go`. Raises trio.ClosedResourceError where `Seat.leave` comes meanwhile. Once it has
        returned or raised, the stream is not called any more."""

    def let_go(self) -> None:
        """The stream is not to be called any more."""

    def look_again(self) -> None:
        """Has `ready` called when others had their turn: there may be more."""

    def call_soon(self) -> None:
        """Has `resumed` called when what is under way is done."""

    @property
    def push_soon(self) -> Callable[[Called], None]:
        """Has `push` of that stream called when what was received by others, too, is handled."""


class Alone:
    """A seat without a crowd: Trio's own wait."""

    __slots__ = ("_descriptor", "joined", "promising")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.joined = False
        self.promising = True

    async def wait(self, *, patient: bool) -> None:
        if self._descriptor < 0:
            raise trio.ClosedResourceError("the socket was closed")
        self.promising = True
        await trio.lowlevel.wait_readable(self._descriptor)

    def received(self, *, all_of_it: bool) -> None:
        pass

    def caller(self, stream: Called) -> Caller | None:
        return None

    def leave(self) -> None:
        trio.lowlevel.notify_closing(self._descriptor)
        self._descriptor = -1


class _CrowdSeat:
    """Takes part in the crowd or not, as it is worth it."""

    __slots__ = (
        "_crowd",
        "_descriptor",
        "_others",
        "_since",
        "called",
        "ended",
        "joined",
        "patient",
        "promising",
        "push_soon",
        "queued",
        "task",
    )

    def __init__(self, crowd: Crowd, descriptor: int) -> None:
        self._crowd = crowd
        self._descriptor = descriptor
        self.joined = False
        self._others = crowd.received
        """How often others had received when this one waited last; and what time (s, monotonic) it was."""
        self._since = monotonic()
        self.promising = True
        """In the crowd: something came that was not received yet."""
        self.ended = False
        """In the crowd: whether the other side sends no more. What there is to receive, the end among it, is not told
        again."""
        self.task: Task | None = None
        """Who waits in the crowd, or until what is called is let go."""
        self.called: Called | None = None
        """Who is called."""
        self.push_soon = crowd.push_soon
        self.patient = False
        self.queued = False

    async def wait(self, *, patient: bool) -> None:
        if self._descriptor < 0:
            raise trio.ClosedResourceError("the socket was closed")
        crowd, now = self._crowd, monotonic()
        others = crowd.received - self._others
        worth_it = others >= MANY and others >= (now - self._since) * BUSY_PER_SECOND
        self._others, self._since = crowd.received, now
        if (patient or worth_it) and (self.joined or self._join()):
            await self._wait_among_others(patient)
            return
        if self.joined:
            self._part()
        self.promising = True
        await trio.lowlevel.wait_readable(self._descriptor)

    async def _wait_among_others(self, patient: bool) -> None:
        if self.task is not None:
            raise trio.BusyResourceError("another task waits for the socket")
        if self.promising:
            if not patient:
                return
            self.promising = False
            self._crowd.look_again(self._descriptor)
        self.task = trio.lowlevel.current_task()
        self.patient = patient
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _join(self) -> bool:
        try:
            self._crowd.join(self._descriptor, self)
        except OSError:  # the system has no room for one more
            return False
        self.joined = True
        self.promising = False
        return True

    def _abort(self, _: object) -> Abort:
        self.task = None
        return Abort.SUCCEEDED

    def _part(self) -> None:
        self._crowd.part(self._descriptor)
        self.joined = self.ended = False
        self.promising = True

    def received(self, *, all_of_it: bool) -> None:
        self._crowd.received += 1
        self._others += 1
        if all_of_it and self.joined:
            self.promising = self.ended

    def caller(self, stream: Called) -> Caller | None:
        if self._descriptor < 0:
            raise trio.ClosedResourceError("the socket was closed")
        if not (self.joined or self._join()):
            return None
        self.called = stream
        return self

    async def until_let_go(self) -> None:
        try:
            if self.called is None:
                await trio.lowlevel.checkpoint()
            else:
                self.task = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort)
        finally:
            self.called = None
            self._others, self._since = self._crowd.received, monotonic()

    def let_go(self) -> None:
        self.called = None
        _wake(self)

    def look_again(self) -> None:
        if self.joined:
            self._crowd.look_again(self._descriptor)

    def call_soon(self) -> None:
        self._crowd.call_soon(self)

    def leave(self) -> None:
        self.called = None
        if self._descriptor >= 0:
            if self.joined:
                self._part()
            trio.lowlevel.notify_closing(self._descriptor)
            self._descriptor = -1
        task, self.task = self.task, None
        if task is not None:
            trio.lowlevel.reschedule(task, outcome.Error(trio.ClosedResourceError("the socket was closed")))


class Crowd:
    """Wakes those who wait in its seats, and calls those who are to be called, as long as `run` runs."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._seats: dict[int, _CrowdSeat] = {}
        self._queue: deque[_CrowdSeat] = deque()
        """Patient streams that can read, those that could first in front."""
        self.received = 0
        """How often those who have a seat received something."""
        self._again: list[_CrowdSeat] = []
        """For whom the last pass had no time."""
        self._resumed: deque[_CrowdSeat] = deque()
        self._to_push: list[Called] = []
        self._passing = False
        """Whether streams are called just now: what they ask for is done at the end of that."""
        self._rouser: Task | None = None
        """Waits for `call_soon` between passes."""

    def seat(self, descriptor: int) -> Seat:
        """For a connected socket."""
        return _CrowdSeat(self, descriptor)

    def join(self, descriptor: int, seat: _CrowdSeat) -> None:
        """From now on the seat is told what comes, what is there already among it.

        Raises OSError where the system has no room for one more.
        """
        self._epoll.register(descriptor, _TOLD)
        self._seats[descriptor] = seat

    def look_again(self, descriptor: int) -> None:
        """A seat that knows that there is something is told so once more, when its turn comes."""
        self._epoll.modify(descriptor, _TOLD)

    def part(self, descriptor: int) -> None:
        del self._seats[descriptor]
        self._epoll.unregister(descriptor)

    def call_soon(self, seat: _CrowdSeat) -> None:
        """Calls who is called in the seat, when the calls that are under way have come to their end."""
        self._resumed.append(seat)
        if self._rouser is not None and not self._passing:
            rouser, self._rouser = self._rouser, None
            trio.lowlevel.reschedule(rouser)

    def push_soon(self, called: Called) -> None:
        """Has it send when the pass is over, or at once between passes."""
        if self._passing:
            self._to_push.append(called)
        else:
            called.push()

    async def run(self) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._call_between_passes)
            await self._run()

    async def _run(self) -> None:
        queue = self._queue
        while True:
            if queue or self._again or self._resumed:
                await trio.lowlevel.checkpoint()
            else:
                await trio.lowlevel.wait_readable(self._epoll.fileno())
            ends = monotonic() + PASS_SECONDS
            while self._look(ends) and monotonic() < ends:  # meanwhile more may have come
                pass
            for _ in range(min(len(queue), AT_ONCE)):
                seat = queue.popleft()
                seat.queued = False
                _wake(seat)

    def _look(self, ends: float) -> bool:
        """Wakes those for whom something came, or calls them: first those for whom the last pass had no time. Whether
        any were called."""
        called, self._again = self._again, []
        for descriptor, mask in self._epoll.poll(0, _MOST_EVENTS):
            seat = self._seats.get(descriptor)
            if seat is None:  # it left in this very pass
                continue
            seat.promising = True
            if mask != select.EPOLLIN:
                seat.ended = True
            if seat.called is not None:
                called.append(seat)
            elif seat.task is None:
                continue
            elif not seat.patient:
                _wake(seat)
            elif not seat.queued:  # more may come while it is in the queue
                seat.queued = True
                self._queue.append(seat)
        if called or self._resumed:
            self._call(called, ends)
        return bool(called)

    def _call(self, seats: list[_CrowdSeat], ends: float) -> None:
        """Has what came handled, and then all answers sent."""
        self._passing = True
        for number, seat in enumerate(seats):
            if seat.called is not None and seat.promising:
                seat.called.ready()
                if monotonic() > ends:
                    self._again += seats[number + 1 :]
                    break
        self.received += len(seats) - len(self._again)
        self._finish(ends)
        self._passing = False

    def _finish(self, ends: float) -> None:
        """Does what was asked for meanwhile, though some of it in the next pass if there is so much."""
        while self._resumed:
            seat = self._resumed.popleft()
            if seat.called is not None:
                seat.called.resumed()
                if monotonic() > ends:
                    break
        to_push, self._to_push = self._to_push, []
        for called in to_push:
            called.push()

    async def _call_between_passes(self) -> None:
        """Until cancelled."""

        def abort(_: object) -> Abort:
            self._rouser = None
            return Abort.SUCCEEDED

        while True:
            self._rouser = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(abort)
            while self._resumed:
                self._passing = True
                self._finish(monotonic() + PASS_SECONDS)
                self._passing = False
                await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Nobody waits any more."""
        self._epoll.close()


def _wake(seat: _CrowdSeat) -> None:
    task, seat.task = seat.task, None
    if task is not None:  # it may have given up meanwhile
        trio.lowlevel.reschedule(task)


@asynccontextmanager
async def open_crowd() -> AsyncIterator[Callable[[int], Seat]]:
    """Gives seats in a crowd that runs; where the system has no epoll, seats of their own."""
    if not hasattr(select, "epoll"):
        yield Alone
        return
    crowd = Crowd()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crowd.run)
            yield crowd.seat
            nursery.cancel_scope.cancel()
    finally:
        crowd.close()
