"""What of a connection's requests and answers needs no task: they are received, begun, answered as they come.

An exchange is a receiver of its stream (`received`, `filled`, `resumed`; see `kwire.ports.attending`), and all that it
does is done at once. The connection's task (`connection.py`) does what has to wait, and finds here how far things are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from kwire.broker.context import RequestRefused
from kwire.broker.dispatch import LARGE_FRAME, Call, Parts, understand
from kwire.broker.frames import FrameReader
from kwire.broker.parked import Parked, Waiting
from kwire.broker.session import Session
from kwire.broker.templates import Shape, Template
from kwire.ports.at_once import GIVES_WAY, Signal, step
from kwire.ports.attending import Next
from kwire.ports.transport import Stream
from kwire.ports.turns import TURN_SECONDS
from kwire.protocol.schema import Message

if TYPE_CHECKING:
    from kwire.broker.broker import Broker

FLUSH_BYTES: Final = 256 * 1024
"""Answers to one read's requests leave earlier than after the last of them once they are this large together."""

_CHUNK: Final = 120 * 1024
"""Bytes asked of the socket at once: holds seven default producer batches, below malloc's mmap threshold."""

_LARGEST_CHUNK: Final = 1024 * 1024
"""Bytes asked of the socket at once while a large frame arrives."""


class Exchange:
    """Of one connection; one request is under way at a time."""

    def __init__(self, broker: Broker, stream: Stream, session: Session) -> None:
        self._broker = broker
        self._stream = stream
        self._session = session
        self.frames = FrameReader(broker.config["socket.request.max.bytes"], broker.receive_buffers)
        self.wanted = _CHUNK
        """How many bytes at most the stream is to bring at once."""
        self.room: memoryview | None = None
        """Where the stream is to put them, where a frame is received into a buffer."""
        self.needed = 1
        """Without so many there is nothing to do."""
        self.arrived = 0
        """How many of them the stream was last known to have."""
        self.requests: deque[memoryview] = deque()
        """Frames that were received and not looked at yet."""
        self.call: Call | None = None
        """The request that is under way."""
        self.work: Coroutine[Any, Any, Any] | None = None
        """What of it stands still or has not begun, where it is done without the task."""
        self.awaited: Signal | None = None
        """What it stands still for, if that is not the task."""
        self.parked: Parked | None = None
        """What it waits in, where its handler is done."""
        self._shapes: tuple[Shape, ...] = ()
        """By which its requests may be known."""
        self.ended = False
        """Whether the client sends no more."""
        self.fault: Exception | None = None
        """What happened in a call of the stream; for the task to raise."""
        self.out: Parts = []
        """Answers that are owed, `out_bytes` in all."""
        self.out_bytes = 0
        self.stopping = False
        """Whether the connection is to end after the answers that are due."""
        self.busy = False
        """Whether something that was received is not answered yet."""
        self.last_active = broker.clock.monotonic()
        """When something last happened (seconds, monotonic)."""

    def take(self, data: bytes) -> None:
        if not data:
            self.ended = True
            return
        self.busy = True
        self.requests += self.frames.feed(data)
        self._ask_for_more()

    def _ask_for_more(self) -> None:
        """Says what the stream is to bring next."""
        frames = self.frames
        self.wanted, self.room, self.needed, self.arrived = _CHUNK, None, 1, 0
        if frames.held:
            missing = frames.missing
            self.wanted, self.room = min(max(missing, _CHUNK), _LARGEST_CHUNK), frames.room
            if frames.large:
                self.needed = min(missing, _LARGEST_CHUNK)

    def received(self, data: bytes) -> Next:
        """For the stream that is attended."""
        try:
            self.take(data)
            return Next.LEAVE if self.ended else self._advance()
        except Exception as fault:
            self.fault = fault
            return Next.LEAVE

    def filled(self, size: int) -> Next:
        """For the stream that is attended."""
        try:
            if not size:
                self.ended = True
                return Next.LEAVE
            self.busy = True
            self.requests += self.frames.filled(size)
            self._ask_for_more()
            return self._advance()
        except Exception as fault:
            self.fault = fault
            return Next.LEAVE

    def resumed(self) -> Next:
        """For the stream that is attended: handles what was received, as far as that needs no task."""
        try:
            return self._advance()
        except Exception as fault:
            self.fault = fault
            return Next.LEAVE

    def _advance(self) -> Next:
        """As `resumed`. Raises RequestRefused."""
        broker, requests = self._broker, self.requests
        turn_ends = broker.clock.monotonic() + TURN_SECONDS if self.call is not None and requests else 0.0
        while self.call is not None or requests:
            if self.call is not None:
                wanted = self._step()
            elif self._stream.held_up:
                return self.after_answers(Next.LEAVE)  # the task does no more than is taken
            else:
                frame = requests.popleft()
                found = broker.templates.find(self._shapes, frame) if self._shapes else None
                if found is not None and self._answer_as_before(frame, *found):
                    wanted = self._step()
                elif len(frame) > LARGE_FRAME:
                    requests.appendleft(frame)
                    return self.after_answers(Next.LEAVE)  # it is decoded aside
                else:
                    call = self.call = understand(broker, self._session, frame)
                    if (found is None or not found[0].settles) and call.api.templates is not None:
                        self._shapes = broker.templates.learn(self._shapes, call, frame)
                    if call.api.at_once:
                        self.work = call.api.handle(broker, call, call.request)
                    wanted = self._step()
            if wanted is not None:
                return self.after_answers(wanted)
            if requests:
                now = broker.clock.monotonic()
                turn_ends = turn_ends or now + TURN_SECONDS
                if self.out_bytes > FLUSH_BYTES:
                    return self.after_answers(Next.LEAVE)
                if now >= turn_ends:
                    self._stream.resume_later()
                    return self.after_answers(Next.WAIT)
        self.last_active = broker.clock.monotonic()
        if self.stopping or self.frames.error is not None:
            return self.after_answers(Next.LEAVE)
        self.busy = False
        return self.after_answers(Next.READ)

    def learn(self, call: Call, frame: memoryview) -> None:
        """Has a request that was understood be known by its template, if it can have one, when it comes again."""
        if call.api.templates is not None:
            self._shapes = self._broker.templates.learn(self._shapes, call, frame)

    def _answer_as_before(self, frame: memoryview, template: Template, correlation_id: int) -> bool:
        """Whether what is known of an earlier request sufficed to answer one, or to begin with it, and did."""
        broker = self._broker
        try:
            answer = template.answer(broker, self._session, frame, correlation_id)
        except RequestRefused:
            raise
        except Exception as error:
            call = understand(broker, self._session, frame)
            response = call.failed(broker, error)
            if response is not None:
                self._owe(call.answer(broker, response))
            return True
        if answer is None:
            return False
        if isinstance(answer, list):
            if answer:
                self._owe(answer)
        elif isinstance(answer, Waiting):
            self.call = answer.call
            self._park(answer)
        else:
            self.call = understand(broker, self._session, frame)
            self.work = answer
        return True

    def _step(self) -> Next | None:
        """Does what there is to do for the request under way, or is left of it; None when it is answered, or if there
        is none."""
        broker, call = self._broker, self.call
        if call is None:
            return None
        while self.work is not None:
            try:
                reason = step(self.work)
            except StopIteration as ended:
                self.work = None
                response = ended.value
            except RequestRefused:
                self.work = None
                raise
            except Exception as error:
                self.work = None
                response = call.failed(broker, error)
            else:
                self.awaited = None
                if reason is GIVES_WAY:
                    self._stream.resume_later()
                    return Next.WAIT
                if not isinstance(reason, Signal):
                    return Next.LEAVE
                self.awaited = reason
                reason.on_set = self._stream.resume
                self.last_active = broker.clock.monotonic()
                return Next.WAIT
            if response is not None and not isinstance(response, (Message, list)):
                self._park(response)
                continue
            self.parked = self.call = None
            if response:
                self._owe(call.answer(broker, response))
            return None
        return Next.LEAVE

    def _owe(self, parts: Parts) -> None:
        """Sends an answer with those of all others of the pass."""
        if self.requests or self.out:
            self.add(parts)
        else:
            self._stream.send_soon(parts)

    def after_answers(self, wanted: Next) -> Next:
        """What is wanted, when the answers that are owed have been sent."""
        if self.out:
            self._stream.send_soon(self.out)
            self.out, self.out_bytes = [], 0
        return wanted

    def _park(self, parked: Parked) -> None:
        self.parked = parked
        if parked.at_once:
            self.work = parked.response()
            if self.stopping:
                parked.hurry()

    def add(self, parts: Parts) -> None:
        """An answer that is owed."""
        self.out += parts
        for part in parts:
            self.out_bytes += len(part)
