"""One client connection: reads requests, starts them in order, sends the answers in that order.

One request is under way at a time, as Kafka mutes a channel; only a Produce that waits for replicas, its append done,
lets the next one start. All whole requests that one read brought are handled before the next read, and their answers
leave in one write. The task that reads also writes, except while a pipelined answer is awaited: then a second task
(the drainer) writes, so that the reader may start what comes behind.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from kwire.broker.context import RequestRefused, Session
from kwire.broker.dispatch import Call, Parts, understand
from kwire.broker.frames import FrameReader
from kwire.broker.parked import Parked
from kwire.ports.transport import Stream, StreamClosed
from kwire.ports.turns import Turn
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
        self._frames = FrameReader(broker.config["socket.request.max.bytes"])
        self._memory = broker.request_memory
        self._taken = 0
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
        self._busy = False
        self._last_active = broker.clock.monotonic()

    async def run(self, spawn: Callable[..., None]) -> None:
        """Serves until the client goes, misbehaves, is idle for too long, or the broker stops. Raises faults alone.

        `spawn` starts a task that lives no longer than the broker.
        """
        stream, frames = self._stream, self._frames
        stream.patient = True
        try:
            while not self._stopping:
                size = min(max(frames.missing, _CHUNK), _LARGEST_CHUNK) if frames.held else _CHUNK
                data = await stream.receive(size)
                if not data:
                    break
                self._busy = True
                self._last_active = self._broker.clock.monotonic()
                requests = frames.feed(data)
                turn = Turn(self._broker.clock) if len(requests) > 1 else None
                for frame in requests:
                    await self._handle(understand(self._broker, self._session, frame), spawn)
                    if turn is not None:
                        await turn.share()
                if frames.error is not None:
                    raise RequestRefused(frames.error)
                await self._flush()
                if self._memory.limited:
                    await self._account()
                self._last_active = self._broker.clock.monotonic()
                self._busy = False
            await self._until_drained()
        except StreamClosed:
            pass
        except RequestRefused as refusal:
            self._broker.limited_log.warning(
                logger, "connection closed", "client=%s reason=%r", self._session.client_host, str(refusal)
            )
            await self._last_words()
        finally:
            self._memory.give_back(self._taken)
            stream.close()
            self._hurry_pipelined()

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
        which the client takes nothing.
        """
        if self._sending:
            if self._stream.sent != self._sent:
                self._sent = self._stream.sent
                self._last_active = now
        elif self._busy and self._parked is None:
            return now
        return self._last_active

    def stop(self) -> None:
        """Ends the connection after the answers that are due: what waits is answered with what there is."""
        self._stopping = True
        if self._parked is not None:
            self._parked.hurry()
        self._hurry_pipelined()
        if not self._busy and not self._pipeline:
            self._stream.close()

    def close(self) -> None:
        """Ends the connection at once."""
        self._stream.close()
        if self._parked is not None:
            self._parked.hurry()

    async def _handle(self, call: Call, spawn: Callable[..., None]) -> None:
        self._stream.patient = call.patient
        response = await call.start(self._broker)
        if response is None:
            return
        if not isinstance(response, Message):
            if response.pipelined:
                await self._pipe(call, response, spawn)
                return
            response = await self._wait_for(call, response)
        parts = call.answer(self._broker, response)
        self._out += parts
        for part in parts:
            self._out_bytes += len(part)
        if self._out_bytes > _FLUSH_BYTES:
            await self._flush()

    async def _pipe(self, call: Call, parked: Parked, spawn: Callable[..., None]) -> None:
        """Has the drainer send the answer, so that the next request may start."""
        try:
            await self._flush()
        except BaseException:
            parked.abandon()
            raise
        self._pipeline.append((call, parked))
        if self._stopping:
            parked.hurry()
        if not self._draining:
            self._draining = True
            self._drained = trio.Event()
            spawn(self._drain)
        elif len(self._pipeline) >= _MOST_PIPELINED:
            await self._until_drained()

    async def _wait_for(self, call: Call, parked: Parked) -> Message:
        """The response, when what is owed has been sent."""
        if self._out or self._draining:
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
