"""The network for real: TCP sockets driven by Trio's readiness calls.

Sockets are the operating system's own in non-blocking mode, not Trio's wrappers: an operation is tried at once and only
where the kernel says "not now" does the task wait for readiness, which keeps a request and its answer inline. Where
many streams receive they wait together (`crowd.py`), nothing is tried that is told anyway, and answers leave together.
"""

from __future__ import annotations

import errno
import logging
import os
import resource
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence

import trio
from trio.lowlevel import checkpoint, notify_closing, wait_readable, wait_writable

from kwire.ports.open_crowd import open_crowd
from kwire.ports.seats import Alone, Seat
from kwire.ports.tcp_stream import TcpStream
from kwire.ports.transport import Stream, StreamClosed

log = logging.getLogger(__name__)

ACCEPTED_AT_ONCE = 32
"""So many connections are accepted before other tasks get their turn. One by one would be too slow where all clients
come back at once: what the kernel's queue (`backlog`) has no room for, is tried again by the client's kernel after
seconds."""

ACCEPT_PAUSE_SECONDS = 0.1
"""How long accepting pauses when the process has no descriptor or memory left for one more connection."""

KEPT_FOR_FILES = 1280
"""So many descriptors, or half of those there may be, are kept from connections: a broker that can't open a file takes
its log dir for broken. It has 512 segments open, and a second time those that are read from the disk front to back."""

PORT_ATTEMPTS = 20
"""How often a free port is drawn until it is free on every address of the host name."""

CONNECT_ATTEMPT_SECONDS = 3.0
"""How long an address that does not answer may keep the next address of the same host name waiting."""

_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_NO_SUCH_FAMILY = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT}
_EVERY_ADDRESS = [(int(socket.AF_INET6), "::"), (int(socket.AF_INET), "0.0.0.0")]
_MAPPED = "::ffff:"
"""Before an IPv4 address that is written as an IPv6 one."""


def _descriptors_for_connections() -> int:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else max(most // 2, most - KEPT_FOR_FILES)


class TcpListener:
    """Listening sockets on every address of one host name, all on one port."""

    def __init__(self, sockets: list[socket.socket], host: str, port: int, transport: TcpTransport) -> None:
        self.host = host
        self.port = port
        self._sockets = sockets
        self._transport = transport

    async def serve(
        self, handler: Callable[[Stream], Awaitable[None]], room: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Accepts until cancelled or closed. An exception of a handler is logged and ends that connection only."""
        async with open_crowd() as seat, trio.open_nursery() as nursery:
            for sock in self._sockets:
                nursery.start_soon(self._accept_all, sock, seat, nursery, handler, room)

    async def _accept_all(
        self,
        listening: socket.socket,
        seat: Callable[[int], Seat],
        nursery: trio.Nursery,
        handler: Callable[[Stream], Awaitable[None]],
        room: Callable[[], Awaitable[None]] | None,
    ) -> None:
        starved = False
        accepted = 0
        while True:
            if room is not None:
                await room()
            if self._transport.serves_enough:
                if listening.fileno() < 0:
                    return
                starved = await self._pause(starved, os.strerror(errno.EMFILE))
                continue
            try:
                sock, address = listening.accept()
            except BlockingIOError:
                accepted = 0
                try:
                    await wait_readable(listening.fileno())
                except trio.ClosedResourceError:
                    return
                continue
            except OSError as error:
                if listening.fileno() < 0:
                    return
                if error.errno in _OUT_OF_RESOURCES:
                    starved = await self._pause(starved, error.strerror)
                else:  # ECONNABORTED and the like: that connection failed before it was accepted
                    await checkpoint()
                continue
            starved = False
            try:
                self._transport.prepare(sock)
            except OSError:  # reset meanwhile
                sock.close()
                continue
            self._transport.served += 1
            nursery.start_soon(self._handle, TcpStream(sock, _peer(address), seat(sock.fileno())), handler)
            accepted += 1
            if accepted % ACCEPTED_AT_ONCE == 0:
                await checkpoint()

    async def _handle(self, stream: TcpStream, handler: Callable[[Stream], Awaitable[None]]) -> None:
        try:
            await handler(stream)
        except* StreamClosed:
            log.debug("%s:%d went away", stream.peer_host, stream.peer_port)
        except* Exception as group:
            log.error("the handler of %s:%d failed", stream.peer_host, stream.peer_port, exc_info=group)
        finally:
            stream.close()
            self._transport.served -= 1

    async def _pause(self, starved: bool, reason: str | None) -> bool:
        """Until there may be a descriptor for one more connection. Returns True: `starved` from now on."""
        if not starved:
            log.warning("cannot accept connections on %s:%d: %s", self.host, self.port, reason)
        await trio.sleep(ACCEPT_PAUSE_SECONDS)
        return True

    def close(self) -> None:
        for sock in self._sockets:
            if sock.fileno() >= 0:
                notify_closing(sock.fileno())
                sock.close()


class TcpTransport:
    """TCP over IPv4 and IPv6. Buffer sizes are bytes; -1 leaves them to the operating system, which adapts them."""

    def __init__(self, *, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1) -> None:
        self._send_buffer_bytes = send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes
        self.served = 0
        """How many connections its listeners have accepted that are not closed."""

    @property
    def serves_enough(self) -> bool:
        """Whether one more connection would take a descriptor that is kept for files."""
        return self.served >= _descriptors_for_connections()

    async def listen(self, host: str, port: int, backlog: int = 50) -> TcpListener:
        """Listens on every address of `host`; "" is every address of this machine. Port 0 takes a free one."""
        addresses = await _resolve(host, port, socket.AI_PASSIVE) if host else _EVERY_ADDRESS
        for attempt in range(PORT_ATTEMPTS):
            try:
                sockets = self._bind_all(addresses, port, backlog)
                break
            except OSError as error:  # a free port of one address may be taken on the next: draw another
                if port or error.errno != errno.EADDRINUSE or attempt == PORT_ATTEMPTS - 1:
                    raise
        return TcpListener(sockets, host, sockets[0].getsockname()[1], self)

    def _bind_all(self, addresses: Sequence[tuple[int, str]], port: int, backlog: int) -> list[socket.socket]:
        sockets: list[socket.socket] = []
        refused: OSError | None = None
        try:
            for family, address in addresses:
                try:
                    sock = self._listening(family, address, port, backlog)
                except OSError as error:
                    if error.errno not in _NO_SUCH_FAMILY:
                        raise
                    refused = error  # a name like localhost may have an IPv6 address on a machine without IPv6
                    continue
                sockets.append(sock)
                port = sock.getsockname()[1]
                if address == "::":
                    break  # takes IPv4 too
        except OSError:
            for sock in sockets:
                sock.close()
            raise
        if not sockets:
            raise refused or OSError(errno.EADDRNOTAVAIL, "no address to listen on")
        return sockets

    async def addresses(self, host: str) -> list[str]:
        return [address.removeprefix(_MAPPED) for _, address in await _resolve(host, 0, 0)]

    async def connect(self, host: str, port: int) -> TcpStream:
        """Tries the addresses of `host` one after the other."""
        addresses = await _resolve(host, port, 0)
        failure: OSError = OSError(errno.EADDRNOTAVAIL, f"{host} has no address")
        for index, (family, address) in enumerate(addresses):
            last = index == len(addresses) - 1
            try:
                with trio.move_on_after(float("inf") if last else CONNECT_ATTEMPT_SECONDS):
                    return await self._connected(family, address, port)
                failure = TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            except OSError as error:
                failure = error
        raise failure

    def prepare(self, sock: socket.socket) -> None:
        """The options every connected socket gets. May raise OSError."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._set_buffers(sock)

    def _set_buffers(self, sock: socket.socket) -> None:
        if self._send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        if self._receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)

    def _listening(self, family: int, address: str, port: int, backlog: int) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == "::" else 1)
            self._set_buffers(sock)  # before listen(): a connection's largest window is settled by its first packet
            sock.bind((address, port))
            sock.listen(backlog)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _connected(self, family: int, address: str, port: int) -> TcpStream:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            self.prepare(sock)
            try:
                sock.connect((address, port))
            except BlockingIOError:
                await wait_writable(sock.fileno())
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    raise OSError(code, os.strerror(code)) from None
            if sock.getsockname() == sock.getpeername():  # TCP lets a socket meet itself on a free local port
                raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        except BaseException:
            sock.close()
            raise
        return TcpStream(sock, (address, port), Alone(sock.fileno()))


async def _resolve(host: str, port: int, flags: int) -> list[tuple[int, str]]:
    """(family, address) of a name or of a literal address (brackets around an IPv6 one allowed), without doubles."""
    try:
        found = await trio.socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=flags)
    except UnicodeError:  # as of "a..b"
        raise OSError(errno.EINVAL, f"{host} can be no host's name") from None
    return list(dict.fromkeys((int(family), str(address[0])) for family, _, _, _, address in found))


def _peer(address: tuple[str, int] | tuple[str, int, int, int]) -> tuple[str, int]:
    return address[0].removeprefix(_MAPPED), address[1]  # an IPv4 client of a dual-stack listener is an IPv4 client
