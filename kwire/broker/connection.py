"""One client connection: reads requests, starts them in order, sends the answers in that order.

One request is under way at a time, as Kafka mutes a channel; only a Produce that waits for replicas, its append done,
lets the next one start. All whole requests that one read brought are handled before the next read, and their answers
leave in one write. Who reads also writes, except while a pipelined answer is awaited: then a second task (the drainer)
writes, so that the reader may start what comes behind.

A client that produces or fetches is served without its task as long as that need not wait (`kwire.ports.at_once`): the
connection is then a receiver of its stream (`received`, `resumed`). What needs the task is left to it as it stands:

    run ── receive ──> work off what came        the last request was of an API that often waits
     └──── attend                                it was a Produce or a Fetch:
             received ──> advance ──> READ         answered, and so on
                            ├───────> WAIT         it stands still until its signal, or gives way; resumed ──> advance
                            └───────> LEAVE ──> run works off what is left
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio

from kwire.broker.context import RequestRefused, Session
from kwire.broker.dispatch import LARGE_FRAME, PRODUCE, Call, Parts, understand, understand_aside
from kwire.broker.frames import FrameReader
from kwire.broker.parked import Parked
from kwire.broker.templates import Shape, Template, Waiting
from kwire.ports.at_once import GIVES_WAY, Signal, go_on, step
from kwire.ports.attending import Next
from kwire.ports.transport import Stream, StreamClosed
from kwire.ports.turns import TURN_SECONDS, Turn
from kwire.protocol.schema import Message

if TYPE_CHECKING:
    from kwire.broker.broker import Broker

logger = logging.getLogger(__name__)

_CHUNK = 120 * 1024
"""Bytes asked of the socket at once: holds seven default producer batches, below malloc's mmap threshold."""

_LARGEST_CHUNK = 1024 * 1024
"""Bytes asked of the socket at once while a large frame arrives."""

_FLUSH_BYTES = 256 * 1024
"""Answers to one read's requests leave earlier than after the last of them once they are this large together."""

_MOST_PIPELINED = 128
"""Produce requests of one connection that may wait for replicas at once; the next read waits beyond that."""

_MOST_QUEUED_BYTES = 4 * 1024 * 1024
"""Answers to what came behind them may wait for them up to this size together; beyond it the next read waits."""


class Connection:
    """A connected client from its first byte to its last."""

    def __init__(self, broker: Broker, stream: Stream, session: Session) -> None:
        self._broker = broker
        self._stream = stream
        self._session = session
        self._frames = FrameReader(broker.config["socket.request.max.bytes"], broker.receive_buffers)
        self.wanted = _CHUNK
        """How many bytes at most the stream is to bring at once."""
        self.room: memoryview | None = None
        """Where the stream is to put them, where a frame is received into a buffer."""
        self.needed = 1
        """Without so many there is nothing to do."""
        self._memory = broker.request_memory
        self._taken = 0
        self._requests: deque[memoryview] = deque()
        """Frames that were received and not looked at yet."""
        self._call: Call | None = None
        """The request that is under way."""
        self._work: Coroutine[Any, Any, Any] | None = None
        """What of it stands still or has not begun, where it is done without the task."""
        self._awaited: Signal | None = None
        """What it stands still for, if that is not the task."""
        self._at_once = False
        """Whether the next request will probably need no task."""
        self._shapes: tuple[Shape, ...] = ()
        """By which its requests may be known."""
        self._ended = False
        self._fault: Exception | None = None
        """What happened in a call of the stream; for the task to raise."""
        self._out: Parts = []
        self._out_bytes = 0
        self._pipeline: deque[Parts | tuple[Call, Parked]] = deque()
        self._parked: Parked | None = None
        self._draining = False
        self._queued_bytes = 0
        self._drained = trio.Event()
        self._stopping = False
        self._sending = False
        self._sent = 0
        self._arrived = 0
        self._busy = False
        self._last_active = broker.clock.monotonic()

    async def run(self, spawn: Callable[..., None]) -> None:
        """Serves until the client goes, misbehaves, is idle for too long, or the broker stops. Raises faults alone.

        `spawn` starts a task that lives no longer than the broker.
        """
        stream = self._stream
        stream.patient = True
        try:
            while not self._stopping and not self._ended:
                if self._is_attended:
                    await stream.attend(self)
                    self._raise_fault()
                else:
                    self._take(await stream.receive(self.wanted))
                await self._work_off(spawn)
            await self._until_drained()
        except StreamClosed:
            await self._end_what_was_begun()
        except RequestRefused as refusal:
            self._broker.limited_log.warning(
                logger, "connection closed", "client=%s reason=%r", self._session.client_host, str(refusal)
            )
            await self._last_words()
        finally:
            self._memory.give_back(self._taken)
            stream.close()
            self._hurry_pipelined()
            if self._work is not None:
                self._work.close()
            elif self._parked is not None:
                self._parked.abandon()

    @property
    def _is_attended(self) -> bool:
        """Whether the stream calls while nothing is worked on, rather than that the task waits for it."""
        return self._at_once and not self._draining and not self._memory.limited

    def _raise_fault(self) -> None:
        """What happened in a call of the stream, if anything did."""
        fault, self._fault = self._fault, None
        try:
            if fault is not None:
                raise fault
        finally:
            del fault  # with its traceback it would keep this call, and all that the connection refers to

    async def _end_what_was_begun(self) -> None:
        """A handler that stands amid its work is run to its end, though nobody can be told of it."""
        if self._call is not None and self._work is not None and self._parked is None and self._awaited is None:
            with suppress(RequestRefused):
                left = await self._go_on(self._call, self._work)
                if isinstance(left, Parked):
                    left.abandon()

    def _take(self, data: bytes) -> None:
        if not data:
            self._ended = True
            return
        self._busy = True
        self._requests += self._frames.feed(data)
        self._ask_for_more()

    def _ask_for_more(self) -> None:
        """Says what the stream is to bring next."""
        frames = self._frames
        self.wanted, self.room, self.needed, self._arrived = _CHUNK, None, 1, 0
        if frames.held:
            missing = frames.missing
            self.wanted, self.room = min(max(missing, _CHUNK), _LARGEST_CHUNK), frames.room
            if frames.large:
                self.needed = min(missing, _LARGEST_CHUNK)

    async def _work_off(self, spawn: Callable[..., None]) -> None:
        """Handles what was received, and first of all what was begun without the task."""
        requests = self._requests
        turn = Turn(self._broker.clock) if len(requests) > 1 else None
        if self._call is not None:
            await self._handle(self._call, spawn)
        while requests:
            if len(requests[0]) > LARGE_FRAME and requests[0][:2] != PRODUCE:
                # Neither it nor its frame is kept here by a name: they are to go with the answer.
                await self._handle(await understand_aside(self._broker, self._session, requests.popleft()), spawn)
            else:
                await self._handle(understand(self._broker, self._session, requests.popleft()), spawn)
            if turn is not None:
                await turn.share()
        if self._frames.error is not None:
            raise RequestRefused(self._frames.error)
        if self._is_attended and not (self._stopping or self._ended or self._stream.unsent):
            self._after_answers(Next.READ)  # much of it is sent for less by the stream, which needs no task for that
        else:
            await self._flush()
        if self._memory.limited:
            await self._account()
        self._last_active = self._broker.clock.monotonic()
        self._busy = False

    # Without the task

    def received(self, data: bytes) -> Next:
        """For the stream that is attended."""
        try:
            self._take(data)
            return Next.LEAVE if self._ended else self._advance()
        except Exception as fault:
            self._fault = fault
            return Next.LEAVE

    def filled(self, size: int) -> Next:
        """For the stream that is attended."""
        try:
            if not size:
                self._ended = True
                return Next.LEAVE
            self._busy = True
            self._requests += self._frames.filled(size)
            self._ask_for_more()
            return self._advance()
        except Exception as fault:
            self._fault = fault
            return Next.LEAVE

    def resumed(self) -> Next:
        """For the stream that is attended: handles what was received, as far as that needs no task."""
        try:
            return self._advance()
        except Exception as fault:
            self._fault = fault
            return Next.LEAVE

    def _advance(self) -> Next:
        """As `resumed`. Raises RequestRefused."""
        broker, requests = self._broker, self._requests
        turn_ends = broker.clock.monotonic() + TURN_SECONDS if self._call is not None and requests else 0.0
        while self._call is not None or requests:
            if self._call is not None:
                wanted = self._step(self._call)
            elif self._stream.held_up or (len(requests[0]) > LARGE_FRAME and requests[0][:2] != PRODUCE):
                return self._after_answers(Next.LEAVE)  # the task does no more than is taken
            else:
                frame = requests.popleft()
                found = broker.templates.find(self._shapes, frame) if self._shapes else None
                if found is not None and self._answer_as_before(frame, *found):
                    wanted = None if self._call is None else self._step(self._call)
                else:
                    call = self._call = understand(broker, self._session, frame)
                    if (found is None or not found[0].settles) and call.api.templates is not None:
                        self._shapes = broker.templates.learn(self._shapes, call, frame)
                    if call.api.at_once:
                        self._work = call.api.handle(broker, call, call.request)
                    wanted = self._step(call)
            if wanted is not None:
                return self._after_answers(wanted)
            if requests:
                now = broker.clock.monotonic()
                turn_ends = turn_ends or now + TURN_SECONDS
                if self._out_bytes > _FLUSH_BYTES:
                    return self._after_answers(Next.LEAVE)
                if now >= turn_ends:
                    self._stream.resume_later()
                    return self._after_answers(Next.WAIT)
        self._last_active = broker.clock.monotonic()
        if self._stopping or self._frames.error is not None:
            return self._after_answers(Next.LEAVE)
        self._busy = False
        return self._after_answers(Next.READ)

    def _answer_as_before(self, frame: memoryview, template: Template, correlation_id: int) -> bool:
        """Whether what is known of an earlier request sufficed to answer one, or to begin with it, and did."""
        broker = self._broker
        try:
            answer = template.answer(broker, self._session, frame, correlation_id)
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
            self._call = answer.call
            self._park(answer)
        else:
            self._call = understand(broker, self._session, frame)
            self._work = answer
        return True

    def _step(self, call: Call) -> Next | None:
        """Does what there is to do for a request, or is left of it; None when it is answered."""
        broker = self._broker
        while self._work is not None:
            try:
                reason = step(self._work)
            except StopIteration as ended:
                self._work = None
                response = ended.value
            except Exception as error:
                self._work = None
                response = call.failed(broker, error)
            else:
                self._awaited = None
                if reason is GIVES_WAY:
                    self._stream.resume_later()
                    return Next.WAIT
                if not isinstance(reason, Signal):
                    return Next.LEAVE
                self._awaited = reason
                reason.on_set = self._stream.resume
                self._last_active = broker.clock.monotonic()
                return Next.WAIT
            if response is not None and not isinstance(response, (Message, list)):
                self._park(response)
                continue
            self._parked = self._call = None
            if response:
                self._owe(call.answer(broker, response))
            return None
        return Next.LEAVE

    def _owe(self, parts: Parts) -> None:
        """Sends an answer with those of all others of the pass."""
        if self._requests or self._out:
            self._add(parts)
        else:
            self._stream.send_soon(parts)

    def _after_answers(self, wanted: Next) -> Next:
        """What is wanted, when the answers that are owed have been sent."""
        if self._out:
            self._stream.send_soon(self._out)
            self._out, self._out_bytes = [], 0
        return wanted

    def _park(self, parked: Parked) -> None:
        self._parked = parked
        if parked.at_once:
            self._work = parked.response()
            if self._stopping:
                parked.hurry()

    async def _account(self) -> None:
        """Takes room for a request that is arriving before more of it is read, and gives it back after it."""
        needed = self._frames.missing and self._frames.missing + self._frames.held
        if needed != self._taken:
            self._memory.give_back(self._taken)
            self._taken = 0
            if needed:
                await self._memory.take(needed)
                self._taken = needed

    async def _last_words(self) -> None:
        """Sends the answers to the requests before the one that was refused."""
        try:
            await self._flush()
            await self._until_drained()
        except StreamClosed:
            pass

    def last_active(self, now: float) -> float:
        """When something last happened here, by the broker's monotonic clock (seconds), at which it is `now`.

        A request that is worked on is something that happens. One that waits is not, as in Kafka, nor is an answer of
        which the client takes nothing. Of a large request that is on its way it is known only that more of it has come
        since this was asked last.
        """
        if self._sending or self._stream.unsent:
            if self._stream.sent != self._sent:
                self._sent = self._stream.sent
                self._last_active = now
        elif self._busy and self._parked is None:
            return now
        elif self.needed > 1 and self._stream.arrived != self._arrived:
            self._arrived = self._stream.arrived
            self._last_active = now
        return self._last_active

    def stop(self) -> None:
        """Ends the connection after the answers that are due: what waits is answered with what there is."""
        self._stopping = True
        if self._parked is not None:
            self._parked.hurry()
        self._hurry_pipelined()
        if self._stream.unsent:
            self._stream.resume()  # if that does not call, its task is about to send
        elif not self._busy and not self._pipeline and not self._sending:
            self._stream.close()

    def close(self) -> None:
        """Ends the connection at once."""
        self._stopping = True
        self._stream.close()
        if self._parked is not None:
            self._parked.hurry()

    async def _handle(self, call: Call, spawn: Callable[..., None]) -> None:
        """Does all there is to do for a request, or what was left of it."""
        self._stream.patient = call.api.patient
        self._at_once = call.api.at_once
        response: Message | Parts | Parked | None
        if self._parked is not None and self._work is not None and self._stream.unsent:
            await self._send([])  # not before a handler is done: it may hold what others wait for
        self._call = None
        if self._work is not None:
            response = await self._go_on(call, self._work)
        elif self._parked is not None:
            response, self._parked = self._parked, None
        else:
            response = await call.run(self._broker)
        if response is None:
            return
        if not isinstance(response, (Message, list)):
            if response.pipelined:
                await self._pipe(call, response, spawn)
                return
            response = await self._wait_for(call, response)
        self._add(call.answer(self._broker, response))
        if self._out_bytes > _FLUSH_BYTES and self._requests:
            await self._flush()

    async def _go_on(self, call: Call, work: Coroutine[Any, Any, Any]) -> Message | Parts | Parked | None:
        """Goes on with what stands still: a handler, or a parked request that waits."""
        self._work = None
        try:
            return await go_on(work)
        except Exception as error:
            return call.failed(self._broker, error)
        finally:
            self._parked = None

    def _add(self, parts: Parts) -> None:
        """An answer that is owed."""
        self._out += parts
        for part in parts:
            self._out_bytes += len(part)

    async def _pipe(self, call: Call, parked: Parked, spawn: Callable[..., None]) -> None:
        """Has the drainer send the answer, so that the next request may start."""
        try:
            await self._flush()
        except BaseException:
            parked.abandon()
            raise
        parked.let_go_of_data(call.request)
        self._pipeline.append((call, parked))
        if self._stopping:
            parked.hurry()
        if not self._draining:
            self._draining = True
            self._drained = trio.Event()
            spawn(self._drain)
        elif len(self._pipeline) >= _MOST_PIPELINED:
            await self._until_drained()

    async def _wait_for(self, call: Call, parked: Parked) -> Message | Parts:
        """The response, when what is owed has been sent."""
        if self._out or self._draining or self._stream.unsent:
            try:
                await self._flush()
                await self._until_drained()
            except BaseException:
                parked.abandon()
                raise
        self._parked = parked
        self._last_active = self._broker.clock.monotonic()
        if self._stopping:
            parked.hurry()
        try:
            return await call.finish(self._broker, parked)
        finally:
            self._parked = None
            self._last_active = self._broker.clock.monotonic()

    def _hurry_pipelined(self) -> None:
        for item in self._pipeline:
            if isinstance(item, tuple):
                item[1].hurry()

    async def _flush(self) -> None:
        """Sends what is owed, or queues it behind the pipelined answers that are still awaited."""
        if self._stream.unsent:
            await self._send([])
        if self._out:
            parts, size, self._out, self._out_bytes = self._out, self._out_bytes, [], 0
            if self._draining:
                self._pipeline.append(parts)
                self._queued_bytes += size
                if len(self._pipeline) >= _MOST_PIPELINED or self._queued_bytes > _MOST_QUEUED_BYTES:
                    await self._until_drained()
            else:
                await self._send(parts)

    async def _send(self, parts: Parts) -> None:
        self._sent = self._stream.sent
        self._sending = True
        await self._stream.send(parts)
        self._sending = False

    async def _until_drained(self) -> None:
        if self._draining:
            await self._drained.wait()

    async def _drain(self) -> None:
        """Sends pipelined answers in order until none is left. Its failures end the connection, nothing else."""
        pipeline = self._pipeline
        try:
            while pipeline:
                item = pipeline[0]
                if isinstance(item, tuple):
                    call, parked = item
                    item = call.answer(self._broker, await call.finish(self._broker, parked))
                self._last_active = self._broker.clock.monotonic()
                await self._send(item)
                pipeline.popleft()
        except StreamClosed:
            pass
        except Exception:
            self._broker.limited_log.error(
                logger, "connection failed", "client=%s", self._session.client_host, exc_info=True
            )
        finally:
            if pipeline:
                self._hurry_pipelined()
                pipeline.clear()
                self._stream.close()
            self._draining = False
            self._queued_bytes = 0
            self._drained.set()
            if self._stopping and not self._busy:
                self._stream.close()
