"""The network in memory: hosts, links that can be cut, connections that can be reset, all inside one process.

    MemoryNetwork ── transport("broker-1") ── listen / connect       every host has its own transport
          │
          ├─ cut("broker-1", "broker-2")    nothing passes any more and nobody is told: half-open, connects hang
          ├─ heal("broker-1", "broker-2")   what was on its way arrives after all
          └─ reset("broker-1")              every connection of that host breaks at once, on both sides

A connection is two pipes with bounded buffers. Every wait is Trio's, nothing here reads a clock or draws a number, so
that a simulation's seed alone decides what happens.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import trio

from kwire.ports.attending import Attendance, Receiver
from kwire.ports.files import Buffer, FileSlice
from kwire.ports.transport import Part, Stream, StreamClosed, Streamed

log = logging.getLogger(__name__)

BUFFER_BYTES = 256 * 1024
"""What one direction of a connection holds before its sender waits, where the network does not say otherwise."""

SEGMENT_BYTES = 64 * 1024
"""A part is passed on in pieces of at most this size, as a real network would."""

FIRST_EPHEMERAL_PORT = 49152


class MemoryNetwork:
    """Hosts by name. `buffer_bytes` bounds each direction of each connection."""

    def __init__(self, *, buffer_bytes: int = BUFFER_BYTES) -> None:
        self.buffer_bytes = buffer_bytes
        self._listeners: dict[tuple[str, int], MemoryListener] = {}
        self._streams: dict[MemoryStream, None] = {}  # ordered, so that a run can be repeated
        self._cut: set[tuple[str, str]] = set()
        self._healed = trio.Event()
        self._next_port = FIRST_EPHEMERAL_PORT

    def transport(self, host: str) -> MemoryTransport:
        """The network as `host` sees it. The names "", "localhost", "0.0.0.0" and "::" mean that host itself."""
        return MemoryTransport(self, host)

    def cut(self, source: str, target: str, *, both_ways: bool = True) -> None:
        """From now on nothing gets from `source` to `target`. Neither is told."""
        self._cut.add((source, target))
        if both_ways:
            self._cut.add((target, source))

    def heal(self, source: str, target: str) -> None:
        """Undoes `cut`, both ways; bytes and ends of stream sent meanwhile arrive."""
        self._cut -= {(source, target), (target, source)}
        healed, self._healed = self._healed, trio.Event()
        healed.set()
        for stream in list(self._streams):
            stream.wake()

    def reset(self, host: str, other: str | None = None) -> None:
        """Breaks every connection of `host` (with `other`, if given): what is on its way is lost."""
        for stream in list(self._streams):
            if stream.host == host and other in (None, stream.peer_host):
                stream.break_both_ends()

    def passes(self, source: str, target: str) -> bool:
        """Whether the link from `source` to `target` is whole."""
        return (source, target) not in self._cut

    async def until_passes(self, source: str, target: str) -> None:
        """Waits while the link is cut, either way."""
        while not (self.passes(source, target) and self.passes(target, source)):
            await self._healed.wait()

    def listener(self, host: str, port: int) -> MemoryListener | None:
        return self._listeners.get((host, port))

    def add_listener(self, listener: MemoryListener) -> None:
        """OSError (EADDRINUSE) where that address is taken."""
        address = (listener.host, listener.port)
        if address in self._listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        self._listeners[address] = listener

    def remove_listener(self, listener: MemoryListener) -> None:
        if self._listeners.get((listener.host, listener.port)) is listener:
            del self._listeners[listener.host, listener.port]

    def pair(self, host: str, port: int, peer_host: str, peer_port: int) -> tuple[MemoryStream, MemoryStream]:
        """Two connected streams: the end at `host` first."""
        there, back = _Pipe(self.buffer_bytes), _Pipe(self.buffer_bytes)
        near = MemoryStream(self, host, (peer_host, peer_port), back, there)
        far = MemoryStream(self, peer_host, (host, port), there, back)
        self._streams[near] = self._streams[far] = None
        return near, far

    def forget(self, stream: MemoryStream) -> None:
        self._streams.pop(stream, None)

    def free_port(self) -> int:
        """A port nobody on this network listens on; never the same twice."""
        taken = {port for _, port in self._listeners}
        while True:
            port, self._next_port = self._next_port, self._next_port + 1
            if port not in taken:
                return port


class _Pipe:
    """One direction: bytes on their way, how the stream ends, and who waits for it."""

    __slots__ = ("broken", "changed", "ended", "limit", "pieces", "size")

    def __init__(self, limit: int) -> None:
        self.pieces: deque[memoryview] = deque()
        self.size = 0
        self.limit = limit
        self.ended = False  # the sender closed: the receiver reads what is left, then the end of the stream
        self.broken = False  # nothing more is to be read or sent
        self.changed = trio.Event()

    def wake(self) -> None:
        changed, self.changed = self.changed, trio.Event()
        changed.set()

    def put(self, data: memoryview) -> int:
        """Takes a copy of what there is room for; returns its size."""
        taken = min(len(data), self.limit - self.size, SEGMENT_BYTES)
        self.pieces.append(memoryview(bytes(data[:taken])))
        self.size += taken
        self.wake()
        return taken

    def take(self, max_bytes: int) -> bytes:
        piece = self.pieces.popleft()
        if len(piece) > max_bytes:
            self.pieces.appendleft(piece[max_bytes:])
            piece = piece[:max_bytes]
        self.size -= len(piece)
        self.wake()
        return bytes(piece)

    def end(self) -> None:
        self.ended = True
        self.wake()

    def break_off(self) -> None:
        self.broken = True
        self.pieces.clear()
        self.size = 0
        self.wake()


class MemoryStream:
    """One end of a connection in memory. `host` is the host this end is at."""

    held_up = False
    """What is attended is called when all was sent."""
    arrived = 0
    """It is told of all that comes."""

    def __init__(
        self, network: MemoryNetwork, host: str, peer: tuple[str, int], incoming: _Pipe, outgoing: _Pipe
    ) -> None:
        self.host = host
        self.peer_host, self.peer_port = peer
        self.sent = 0
        self.patient = False
        self._network = network
        self._incoming = incoming
        self._outgoing = outgoing
        self._closed = False
        self._torn = False
        self._attendance: Attendance | None = None
        self._soon: list[Part] = []

    async def receive(self, max_bytes: int) -> bytes:
        await trio.lowlevel.checkpoint()
        pipe = self._incoming
        while True:
            if self._closed or pipe.broken:
                raise StreamClosed("this side was closed" if self._closed else "connection reset")
            if self._network.passes(self.peer_host, self.host):
                if pipe.size:
                    return pipe.take(max_bytes)
                if pipe.ended:
                    return b""
            await pipe.changed.wait()

    async def attend(self, receiver: Receiver) -> None:
        self._attendance = Attendance()
        try:
            await self._attendance.run(self, receiver)
        finally:
            self._attendance = None

    def resume(self) -> None:
        if self._attendance is not None:
            self._attendance.resume()

    resume_later = resume

    def send_soon(self, parts: Sequence[Part]) -> None:
        self._soon += parts

    @property
    def unsent(self) -> bool:
        return bool(self._soon) or (self._attendance is not None and self._attendance.sending)

    async def send(self, parts: Sequence[Part]) -> None:
        await trio.lowlevel.checkpoint()
        if self._torn:
            raise StreamClosed("an earlier send did not finish")
        soon, self._soon = self._soon, []
        try:
            for part in (*soon, *parts):
                if isinstance(part, bytes | bytearray | memoryview | FileSlice):
                    await self._send(_bytes_of(part))
                else:
                    await self._send_streamed(part)
        except BaseException:
            self._torn = True
            raise

    async def _send_streamed(self, part: Streamed) -> None:
        position = 0
        while position < len(part):
            data = await part.read_from(position)
            await self._send(memoryview(data))
            position += len(data)

    async def _send(self, data: memoryview) -> None:
        pipe = self._outgoing
        while data:
            if self._closed or pipe.broken:
                raise StreamClosed("this side was closed" if self._closed else "connection reset")
            if self._incoming.ended and self._network.passes(self.peer_host, self.host):
                raise StreamClosed("the peer has closed")
            if pipe.size < pipe.limit:
                taken = pipe.put(data)
                self.sent += taken
                data = data[taken:]
            else:
                await pipe.changed.wait()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._network.forget(self)
        self._outgoing.end()
        self.wake()
        if self._attendance is not None:
            self._attendance.end(StreamClosed("this side was closed"))

    def wake(self) -> None:
        """Lets whoever waits at this end look again."""
        self._incoming.wake()
        self._outgoing.wake()

    def break_both_ends(self) -> None:
        """A reset: what is on its way is lost, both ends fail from now on."""
        self._incoming.break_off()
        self._outgoing.break_off()


class MemoryListener:
    """Waiting connections of one address of the network, at most `backlog` of them."""

    def __init__(self, network: MemoryNetwork, host: str, port: int, backlog: int) -> None:
        self.host = host
        self.port = port
        self._network = network
        self._arrivals, self._arrived = trio.open_memory_channel[MemoryStream](backlog)

    async def serve(
        self, handler: Callable[[Stream], Awaitable[None]], room: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Accepts until cancelled or closed. An exception of a handler is logged and ends that connection only."""
        async with trio.open_nursery() as nursery:
            if room is not None:
                await room()
            async for stream in self._arrived:
                nursery.start_soon(_handle, stream, handler)
                if room is not None:
                    await room()

    async def arrive(self, stream: MemoryStream) -> None:
        """A new connection; waits while the backlog is full. Broken- or ClosedResourceError if closed."""
        await self._arrivals.send(stream)

    def close(self) -> None:
        self._network.remove_listener(self)
        self._arrivals.close()
        with contextlib.suppress(trio.WouldBlock, trio.EndOfChannel):
            while True:  # connected, but nobody will ever accept them
                self._arrived.receive_nowait().break_both_ends()


class MemoryTransport:
    """The network as one host sees it."""

    def __init__(self, network: MemoryNetwork, host: str) -> None:
        self.network = network
        self.host = host

    async def listen(self, host: str, port: int, backlog: int = 50) -> MemoryListener:
        await trio.lowlevel.checkpoint()
        listener = MemoryListener(self.network, self._name(host), port or self.network.free_port(), backlog)
        self.network.add_listener(listener)
        return listener

    async def addresses(self, host: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        return [self._name(host)]

    async def connect(self, host: str, port: int) -> MemoryStream:
        """Waits for ever while the link is cut: a deadline is the caller's."""
        await trio.lowlevel.checkpoint()
        target = self._name(host)
        await self.network.until_passes(self.host, target)
        listener = self.network.listener(target, port)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        near, far = self.network.pair(self.host, self.network.free_port(), target, port)
        try:
            await listener.arrive(far)
        except BaseException as error:
            near.close()
            far.close()
            if isinstance(error, trio.BrokenResourceError | trio.ClosedResourceError):
                raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)) from error
            raise
        return near

    def _name(self, host: str) -> str:
        return self.host if host in ("", "localhost", "127.0.0.1", "0.0.0.0", "::", "::1") else host


async def _handle(stream: MemoryStream, handler: Callable[[Stream], Awaitable[None]]) -> None:
    try:
        await handler(stream)
    except* StreamClosed:
        log.debug("%s:%d went away", stream.peer_host, stream.peer_port)
    except* Exception as group:
        log.error("the handler of %s:%d failed", stream.peer_host, stream.peer_port, exc_info=group)
    finally:
        stream.close()


def _bytes_of(part: Buffer | FileSlice) -> memoryview:
    if isinstance(part, FileSlice):
        data = part.read()
        if len(data) != part.size:
            raise StreamClosed(f"{part.file.path} ends before byte {part.position + part.size}")
        return memoryview(data)
    return memoryview(part).cast("B")
