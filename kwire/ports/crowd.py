"""Many streams wait for something to read together, and are served while Trio would wait.

A pass of Trio's event loop costs some 40 Python calls and three system calls, a small request all in all 60. So the
crowd is told, as Trio's instruments are, when the loop is about to wait for the system (`before_io_wait`), and waits
itself: for its sockets, for Trio's own files, for so long as Trio would. What comes for the sockets it serves at once,
one pass after the other, and Trio's loop goes on when something comes for Trio, when a task can run, or when the time
is up. Where Trio has always something to do, the crowd is told in each pass of the loop nevertheless, and looks what
has come.

In the crowd a socket is registered once (edge-triggered), and one call tells all that are ready: the busier the broker,
the less a request costs.

Who need not be woken is called (`Called`): the crowd does at once what its streams' tasks would do one by one, and has
all answers of a pass sent when it has handled what came. What there is no room for is sent when there is, and the
stream is told of nothing else meanwhile. Who waits in a task takes part while many others receive, and
leaves when it is rather alone. Trio wakes everybody who can read in the same pass, so that who comes behind a thousand
others is served after all of them; those of the crowd that are patient form a queue instead, of which a few are woken
in each pass.
"""

from __future__ import annotations

import select
from collections import deque
from time import monotonic
from typing import Any, Final

import outcome
import trio
from trio.lowlevel import Abort, Task

from kwire.ports.seats import Called, Caller, Seat
from kwire.ports.trio_loop import TrioLoop

AT_ONCE: Final = 16
"""So many patient streams are woken in one pass. A request of the kind that can wait takes about a tenth of a
millisecond."""

MANY: Final = 8
"""A stream waits in the crowd if others received so often at least since it waited last,"""

BUSY_PER_SECOND = 5000.0
"""and at this rate. What waiting in the crowd costs, all share who are ready together: for one it is more than Trio's
own wait."""

PASS_SECONDS = 0.002
"""For so long those for whom something came may have the event loop, and for as long those who are resumed, before it
is looked whether tasks want their turn."""

_select: Final[Any] = select
"""It has an epoll on Linux alone; elsewhere mypy knows of none, and then mypyc would compile nothing."""

_TOLD: Final[int] = 0 if not hasattr(select, "epoll") else _select.EPOLLIN | _select.EPOLLRDHUP | _select.EPOLLET
"""What a seat in the crowd is told: each time that something comes, and the end."""

_ROOM: Final[int] = 0 if not hasattr(select, "epoll") else _select.EPOLLOUT | _select.EPOLLET
"""What it is told instead if it asked for that: each time that there is room to send again."""

_ENDED: Final[int] = 0 if not hasattr(select, "epoll") else ~(_select.EPOLLIN | _select.EPOLLOUT)
"""Of what a seat is told, what says that the other side sends no more, or that all is over."""

_MOST_EVENTS: Final = 1024
"""So many streams are found ready in one pass; more in the next one."""


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

    def watch_room(self, wanted: bool) -> None:
        if self.joined:
            self._crowd.look_again(self._descriptor, room=wanted)

    def call_soon(self) -> None:
        self._crowd.call_soon(self)

    def call_later(self) -> None:
        self._crowd.call_later(self)

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
    """Wakes those who wait in its seats, and calls those who are to be called, whenever Trio would wait.

    It is told so as an instrument of Trio's is (`open_crowd.py`), but can't be one where it is compiled.
    """

    def __init__(self, loop: TrioLoop) -> None:
        self._loop = loop
        self._epoll = _select.epoll()
        self._epoll.register(loop.descriptor, _select.EPOLLIN)
        self._seats: dict[int, _CrowdSeat] = {}
        self._queue: deque[_CrowdSeat] = deque()
        """Patient streams that can read, those that could first in front."""
        self.received = 0
        """How often those who have a seat received something."""
        self._again: dict[_CrowdSeat, None] = {}
        """For whom the last pass had no time, in their order."""
        self._resumed: deque[_CrowdSeat] = deque()
        self._later: list[_CrowdSeat] = []
        """Who is to be called in the next pass, behind those for whom something came."""
        self._to_push: list[Called] = []
        self._passing = False
        """Whether streams are called just now: what they ask for is done at the end of that."""
        self._failure: BaseException | None = None
        self._failed = trio.Event()

    def seat(self, descriptor: int) -> Seat:
        """For a connected socket."""
        return _CrowdSeat(self, descriptor)

    def join(self, descriptor: int, seat: _CrowdSeat) -> None:
        """From now on the seat is told what comes, what is there already among it.

        Raises OSError where the system has no room for one more.
        """
        self._epoll.register(descriptor, _TOLD)
        self._seats[descriptor] = seat

    def look_again(self, descriptor: int, *, room: bool = False) -> None:
        """A seat is told once more of what is there already, when its turn comes; or, with `room`, of room to send."""
        self._epoll.modify(descriptor, _ROOM if room else _TOLD)

    def part(self, descriptor: int) -> None:
        del self._seats[descriptor]
        self._epoll.unregister(descriptor)

    def call_soon(self, seat: _CrowdSeat) -> None:
        """Calls who is called in the seat, when the calls that are under way have come to their end."""
        self._resumed.append(seat)

    def call_later(self, seat: _CrowdSeat) -> None:
        """Likewise, in the next pass."""
        self._later.append(seat)

    def push_soon(self, called: Called) -> None:
        """Has it send when the pass is over, or at once between passes."""
        if self._passing:
            self._to_push.append(called)
        else:
            called.push()

    async def until_failed(self) -> None:
        """Raises what went wrong."""
        await self._failed.wait()
        assert self._failure is not None
        raise self._failure

    def before_io_wait(self, timeout: float) -> None:
        """Trio has no task that could go on, and is about to wait for so long (s); or only looks what came (0).

        That `timeout` holds: nothing that is called from here may set a deadline of Trio's for an earlier time. (Alarms
        wake a task for that.)
        """
        try:
            self._serve(timeout)
        except BaseException as failure:  # Trio would go on without the crowd
            self._failure = failure
            self._failed.set()
            self._loop.wake()

    def _serve(self, timeout: float) -> None:
        """Until Trio has something to do."""
        waits, ends, served = timeout, monotonic() + timeout, False
        while True:
            if self._has_left:
                waits = 0.0
            told = self._epoll.poll(waits, _MOST_EVENTS)
            trio_was_told = self._pass(told)
            served = served or bool(told)
            if trio_was_told:
                return
            if timeout <= 0:
                if self._has_left and not self._loop.runnable:  # Trio would take it that all is idle
                    self._loop.wake()
                return
            if self._loop.runnable:
                self._loop.wake()
                return
            waits = ends - monotonic()
            if waits <= 0:
                if served or not self._loop.idle_is_awaited():
                    self._loop.wake()
                return

    @property
    def _has_left(self) -> bool:
        """Whether there is more to do without anything having to come."""
        return bool(self._queue or self._again or self._resumed or self._later)

    def _pass(self, told: list[tuple[int, int]]) -> bool:
        """Wakes those for whom something came, or calls them: first those for whom the last pass had no time. Whether
        something came for Trio."""
        trio_was_told = False
        called, self._again = self._again, {}
        if self._later:
            self._resumed += self._later
            self._later.clear()
        for descriptor, mask in told:
            seat = self._seats.get(descriptor)
            if seat is None:
                trio_was_told = True
                continue
            seat.promising = True
            if mask & _ENDED:
                seat.ended = True
            if seat.called is not None:
                called[seat] = None
            elif seat.task is None:
                continue
            elif not seat.patient:
                _wake(seat)
            elif not seat.queued:  # more may come while it is in the queue
                seat.queued = True
                self._queue.append(seat)
        if called or self._resumed:
            self._call([*called])
        queue = self._queue
        for _ in range(min(len(queue), AT_ONCE)):
            seat = queue.popleft()
            seat.queued = False
            _wake(seat)
        return trio_was_told

    def _call(self, seats: list[_CrowdSeat]) -> None:
        """Has what came handled, then what was asked for meanwhile, and then all answers sent. For the first two there
        is some time each; what is not done by then is left to the next pass."""
        self._passing = True
        try:
            ends = monotonic() + PASS_SECONDS
            for number, seat in enumerate(seats):
                if seat.called is not None and seat.promising:
                    seat.called.ready()
                    if monotonic() > ends:
                        self._again = dict.fromkeys(seats[number + 1 :])
                        break
            self.received += len(seats) - len(self._again)
            if self._resumed:
                self._call_back()
        finally:
            to_push, self._to_push = self._to_push, []
            for called in to_push:
                called.push()
            self._passing = False

    def _call_back(self) -> None:
        ends = monotonic() + PASS_SECONDS
        while self._resumed:
            seat = self._resumed.popleft()
            if seat.called is not None:
                seat.called.resumed()
                if monotonic() > ends:
                    break

    def close(self) -> None:
        """Nobody waits any more."""
        self._epoll.close()


def _wake(seat: _CrowdSeat) -> None:
    task, seat.task = seat.task, None
    if task is not None:  # it may have given up meanwhile
        trio.lowlevel.reschedule(task)
