"""One client connection: reads requests, starts them in order, sends the answers in that order.

One request is under way at a time, as Kafka mutes a channel; only a Produce that waits for replicas, its append done,
lets the next one start. All whole requests that one read brought are handled before the next read, and their answers
leave in one write. Who reads also writes, except while a pipelined answer is awaited: then a second task (the drainer)
writes, so that the reader may start what comes behind.

A client that produces, fetches or commits offsets is served without its task as long as that need not wait
(`kwire.ports.at_once`): the connection's exchange (`exchange.py`) is then a receiver of its stream. What needs the task
is left to it as it stands:

    run ── receive ──> work off what came        the last request was of an API that often waits
     └──── attend                                it was a Produce, a Fetch, a commit of offsets:
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

from kwire.broker.context import RequestRefused
from kwire.broker.dispatch import LARGE_FRAME, Call, Parts, understand, understand_aside
from kwire.broker.exchange import FLUSH_BYTES, Exchange
from kwire.broker.parked import Parked
from kwire.broker.session import Session
from kwire.ports.at_once import go_on
from kwire.ports.attending import Next
from kwire.ports.transport import Stream, StreamClosed
from kwire.ports.turns import Turn
from kwire.protocol.schema import Message

if TYPE_CHECKING:
    from kwire.broker.broker import Broker

logger = logging.getLogger(__name__)

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
        self._exchange = Exchange(broker, stream, session)
        self._memory = broker.request_memory
        self._taken = 0
        self._taking: trio.CancelScope | None = None
        """In which room was last waited for."""
        self._at_once = False
        """Whether the next request will probably need no task."""
        self._pipeline: deque[Parts | tuple[Call, Parked]] = deque()
        self._draining = False
        self._queued_bytes = 0
        self._drained = trio.Event()
        self._sending = False
        self._sent = 0

    async def run(self, spawn: Callable[..., None]) -> None:
        """Serves until the client goes, misbehaves, is idle for too long, or the broker stops. Raises faults alone.

        `spawn` starts a task that lives no longer than the broker.
        """
        exchange = self._exchange
        stream = self._stream
        stream.patient = True
        try:
            while not exchange.stopping and not exchange.ended:
                if self._is_attended:
                    await stream.attend(exchange)
                    self._raise_fault()
                else:
                    exchange.take(await stream.receive(exchange.wanted))
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
            if exchange.work is not None:
                exchange.work.close()
            elif exchange.parked is not None:
                exchange.parked.abandon()

    @property
    def _is_attended(self) -> bool:
        """Whether the stream calls while nothing is worked on, rather than that the task waits for it."""
        return self._at_once and not self._draining and not self._memory.limited

    def _raise_fault(self) -> None:
        """What happened in a call of the stream, if anything did."""
        exchange = self._exchange
        fault, exchange.fault = exchange.fault, None
        try:
            if fault is not None:
                raise fault
        finally:
            del fault  # with its traceback it would keep this call, and all that the connection refers to

    async def _end_what_was_begun(self) -> None:
        """A handler that stands amid its work is run to its end, though nobody can be told of it."""
        exchange = self._exchange
        if (
            exchange.call is not None
            and exchange.work is not None
            and exchange.parked is None
            and exchange.awaited is None
        ):
            with suppress(RequestRefused):
                left = await self._go_on(exchange.call, exchange.work)
                if isinstance(left, Parked):
                    left.abandon()

    async def _work_off(self, spawn: Callable[..., None]) -> None:
        """Handles what was received, and first of all what was begun without the task."""
        exchange = self._exchange
        requests = exchange.requests
        turn = Turn(self._broker.clock) if len(requests) > 1 else None
        if exchange.call is not None:
            await self._handle(exchange.call, spawn)
        while requests:
            if len(requests[0]) > LARGE_FRAME:
                # Neither it nor its frame is kept here by a name: they are to go with the answer.
                await self._handle(await self._understand_aside(requests.popleft()), spawn)
            else:
                await self._handle(understand(self._broker, self._session, requests.popleft()), spawn)
            if turn is not None:
                await turn.share()
        if exchange.frames.error is not None:
            raise RequestRefused(exchange.frames.error)
        if self._is_attended and not (exchange.stopping or exchange.ended or self._stream.unsent):
            exchange.after_answers(Next.READ)  # much of it is sent for less by the stream, which needs no task for that
        else:
            await self._flush()
        exchange.last_active = self._broker.clock.monotonic()
        exchange.busy = False
        if self._memory.limited:
            await self._account()

    async def _understand_aside(self, frame: memoryview) -> Call:
        call = await understand_aside(self._broker, self._session, frame)
        self._exchange.learn(call, frame)
        return call

    async def _account(self) -> None:
        """Takes room for a request that is arriving before more of it is read, and gives it back after it.

        Who waits for room is idle, as in Kafka, and may be ended. Raises StreamClosed then.
        """
        exchange = self._exchange
        needed = exchange.frames.missing and exchange.frames.missing + exchange.frames.held
        if needed != self._taken:
            self._memory.give_back(self._taken)
            self._taken = 0
            if needed:
                with trio.CancelScope() as self._taking:
                    await self._memory.take(needed)
                    self._taken = needed
                if self._taking.cancelled_caught:
                    raise StreamClosed

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
        exchange = self._exchange
        if self._sending or self._stream.unsent:
            if self._stream.sent != self._sent:
                self._sent = self._stream.sent
                exchange.last_active = now
        elif exchange.busy and exchange.parked is None:
            return now
        elif exchange.needed > 1 and self._stream.arrived != exchange.arrived:
            exchange.arrived = self._stream.arrived
            exchange.last_active = now
        return exchange.last_active

    def stop(self) -> None:
        """Ends the connection after the answers that are due: what waits is answered with what there is."""
        exchange = self._exchange
        exchange.stopping = True
        if exchange.parked is not None:
            exchange.parked.hurry()
        self._hurry_pipelined()
        if self._stream.unsent:
            self._stream.resume()  # if that does not call, its task is about to send
        elif not exchange.busy and not self._pipeline and not self._sending:
            self._end()

    def close(self) -> None:
        """Ends the connection at once."""
        exchange = self._exchange
        exchange.stopping = True
        self._end()
        if exchange.parked is not None:
            exchange.parked.hurry()

    def _end(self) -> None:
        """Has its task find that there is no more to come."""
        self._stream.close()
        if self._taking is not None:
            self._taking.cancel()

    async def _handle(self, call: Call, spawn: Callable[..., None]) -> None:
        """Does all there is to do for a request, or what was left of it."""
        exchange = self._exchange
        self._stream.patient = call.api.patient
        self._at_once = call.api.at_once
        response: Message | Parts | Parked | None
        if exchange.parked is not None and exchange.work is not None and self._stream.unsent:
            await self._send([])  # not before a handler is done: it may hold what others wait for
        exchange.call = None
        if exchange.work is not None:
            response = await self._go_on(call, exchange.work)
        elif exchange.parked is not None:
            response, exchange.parked = exchange.parked, None
        else:
            response = await call.run(self._broker)
        if response is None:
            return
        if not isinstance(response, (Message, list)):
            if response.pipelined:
                await self._pipe(call, response, spawn)
                return
            response = await self._wait_for(call, response)
        exchange.add(call.answer(self._broker, response))
        if exchange.out_bytes > FLUSH_BYTES and exchange.requests:
            await self._flush()

    async def _go_on(self, call: Call, work: Coroutine[Any, Any, Any]) -> Message | Parts | Parked | None:
        """Goes on with what stands still: a handler, or a parked request that waits."""
        exchange = self._exchange
        exchange.work = None
        try:
            return await go_on(work)
        except RequestRefused:
            raise
        except Exception as error:
            return call.failed(self._broker, error)
        finally:
            exchange.parked = None

    async def _pipe(self, call: Call, parked: Parked, spawn: Callable[..., None]) -> None:
        """Has the drainer send the answer, so that the next request may start."""
        try:
            await self._flush()
        except BaseException:
            parked.abandon()
            raise
        parked.let_go_of_data(call.request)
        self._pipeline.append((call, parked))
        if self._exchange.stopping:
            parked.hurry()
        if not self._draining:
            self._draining = True
            self._drained = trio.Event()
            spawn(self._drain)
        elif len(self._pipeline) >= _MOST_PIPELINED:
            await self._until_drained()

    async def _wait_for(self, call: Call, parked: Parked) -> Message | Parts:
        """The response, when what is owed has been sent."""
        exchange = self._exchange
        if exchange.out or self._draining or self._stream.unsent:
            try:
                await self._flush()
                await self._until_drained()
            except BaseException:
                parked.abandon()
                raise
        exchange.parked = parked
        exchange.last_active = self._broker.clock.monotonic()
        if exchange.stopping:
            parked.hurry()
        try:
            return await call.finish(self._broker, parked)
        finally:
            exchange.parked = None
            exchange.last_active = self._broker.clock.monotonic()

    def _hurry_pipelined(self) -> None:
        for item in self._pipeline:
            if isinstance(item, tuple):
                item[1].hurry()

    async def _flush(self) -> None:
        """Sends what is owed, or queues it behind the pipelined answers that are still awaited."""
        exchange = self._exchange
        if self._stream.unsent:
            await self._send([])
        if exchange.out:
            parts, size = exchange.out, exchange.out_bytes
            exchange.out, exchange.out_bytes = [], 0
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
        exchange = self._exchange
        pipeline = self._pipeline
        try:
            while pipeline:
                item = pipeline[0]
                if isinstance(item, tuple):
                    call, parked = item
                    item = call.answer(self._broker, await call.finish(self._broker, parked))
                exchange.last_active = self._broker.clock.monotonic()
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
            if exchange.stopping and not exchange.busy:
                self._end()
