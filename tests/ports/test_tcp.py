"""What only real sockets do: addresses, options, and running out of descriptors."""

from __future__ import annotations

import errno
import logging
import os
import resource
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trio.lowlevel
import trio.testing

from kwire.ports import tcp
from kwire.ports.files import FileSlice
from kwire.ports.real_files import PosixFileSystem
from kwire.ports.tcp import TcpListener, TcpTransport
from kwire.ports.tcp_sending import SENDFILE_BYTES
from kwire.ports.tcp_stream import TcpStream
from kwire.ports.transport import Stream, StreamClosed
from tests.ports.streams import until


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


async def answer_with_peer(stream: Stream) -> None:
    await stream.send([stream.peer_host.encode()])


async def ask(host: str, port: int) -> str:
    stream = await TcpTransport().connect(host, port)
    answer = await stream.receive(100)
    stream.close()
    return answer.decode()


async def test_an_empty_host_is_every_address() -> None:
    listener = await TcpTransport().listen("", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, answer_with_peer)
        assert await ask("127.0.0.1", listener.port) == "127.0.0.1"
        if has_ipv6():
            assert await ask("[::1]", listener.port) == "::1"
        listener.close()


async def test_localhost_is_reached_over_each_of_its_addresses() -> None:
    listener = await TcpTransport().listen("localhost", 0)
    addresses = {str(found[4][0]) for found in await trio.socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, answer_with_peer)
        for address in addresses:
            if ":" not in address or has_ipv6():
                assert await ask(address, listener.port) == address
        listener.close()


async def test_every_connection_sends_without_delay() -> None:
    """Nagle's delay would hold back the last packet of a response."""
    accepted: list[TcpStream] = []

    async def keep(stream: Stream) -> None:
        assert isinstance(stream, TcpStream)
        accepted.append(stream)
        await stream.send([b"x"])
        await trio.sleep_forever()

    transport = TcpTransport(send_buffer_bytes=30_000, receive_buffer_bytes=20_000)
    listener = await transport.listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, keep)
        stream = await transport.connect("127.0.0.1", listener.port)
        await stream.receive(1)
        for end in (stream, accepted[0]):
            assert end._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert end._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert end._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (30_000, 60_000)  # Linux doubles it
            assert end._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (20_000, 40_000)
        stream.close()
        nursery.cancel_scope.cancel()
    listener.close()


async def test_a_slice_of_a_real_file_is_sent_without_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """os.sendfile: the kernel takes the bytes from the page cache to the socket."""
    content = bytes(range(256)) * 4096
    (tmp_path / "segment.log").write_bytes(content)
    part = FileSlice(PosixFileSystem().open(str(tmp_path / "segment.log")), 1000, len(content) - 1000)

    def refuse(*_: object) -> bytes:
        raise AssertionError("the slice was read")

    monkeypatch.setattr(os, "pread", refuse)

    async def send_slice(stream: Stream) -> None:
        await stream.send([b"header", part])

    listener = await TcpTransport().listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, send_slice)
        stream = await TcpTransport().connect("127.0.0.1", listener.port)
        received = b""
        while data := await stream.receive(65536):
            received += data
        assert received == b"header" + content[1000:]
        stream.close()
        listener.close()


async def test_a_reset_is_a_closed_stream() -> None:
    async def reset(stream: Stream) -> None:
        assert isinstance(stream, TcpStream)
        stream._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    listener = await TcpTransport().listen("127.0.0.1", 0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, reset)
        stream = await TcpTransport().connect("127.0.0.1", listener.port)
        with pytest.raises(StreamClosed, match="reset"):
            await stream.receive(1)
        stream.close()
        listener.close()


class ScriptedSocket:
    """A listening socket whose first accepts fail as told, before the real ones."""

    def __init__(self, real: socket.socket, failures: list[int]) -> None:
        self.real = real
        self.failures = failures

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            raise OSError(self.failures.pop(0), "scripted")
        return self.real.accept()

    def fileno(self) -> int:
        return self.real.fileno()

    def close(self) -> None:
        self.real.close()


async def test_accepting_survives_failures_with_one_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "ACCEPT_PAUSE_SECONDS", 0.001)
    caplog.set_level(logging.WARNING)
    transport = TcpTransport()
    real = await transport.listen("127.0.0.1", 0)
    failures = [errno.EMFILE, errno.EMFILE, errno.ENFILE, errno.ECONNABORTED]
    sock = ScriptedSocket(real._sockets[0], failures)
    listener = TcpListener([sock], real.host, real.port, transport)  # type: ignore[list-item]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, answer_with_peer)
        assert await ask("127.0.0.1", listener.port) == "127.0.0.1"
        assert not failures
        listener.close()
    assert len(caplog.records) == 1
    assert "cannot accept" in caplog.text


@pytest.mark.parametrize(
    ("limit", "most"), [(256, 128), (1024, 512), (4096, 4096 - 1280), (resource.RLIM_INFINITY, sys.maxsize)]
)
def test_descriptors_are_kept_from_connections(limit: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limit, limit))
    assert tcp._descriptors_for_connections() == most


async def test_no_more_connections_are_accepted_than_leave_descriptors(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By all listeners together."""
    monkeypatch.setattr(tcp, "ACCEPT_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(tcp, "_descriptors_for_connections", lambda: 10)
    transport = TcpTransport()
    listeners = [await transport.listen("127.0.0.1", 0) for _ in range(2)]
    served = set()

    async def serve(stream: Stream) -> None:
        served.add(stream)
        with suppress(StreamClosed):
            await stream.receive(100)
        served.discard(stream)

    async with trio.open_nursery() as nursery:
        clients = [socket.create_connection(("127.0.0.1", listeners[number % 2].port)) for number in range(25)]
        for listener in listeners:
            nursery.start_soon(listener.serve, serve)
        await until(lambda: len(served) == 10)
        await until(lambda: caplog.text.count("cannot accept") == 2)
        assert len(served) == 10
        for client in clients[:20]:
            client.close()
        await until(lambda: len(served) == 5)
        more = socket.create_connection(("127.0.0.1", listeners[0].port))
        await until(lambda: len(served) == 6)
        for listener in listeners:
            listener.close()
        for client in [*clients, more]:
            client.close()


async def test_others_get_their_turn_between_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However much of them a socket takes at once."""
    monkeypatch.setattr(os, "sendfile", lambda out, into, position, size: size)
    (tmp_path / "segment.log").write_bytes(bytes(SENDFILE_BYTES))
    part = FileSlice(PosixFileSystem().open(str(tmp_path / "segment.log")), 0, SENDFILE_BYTES // 2)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    with socket.create_server(("127.0.0.1", 0)) as server:
        stream = await TcpTransport().connect(*server.getsockname())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(others)
            await trio.lowlevel.checkpoint()
            before = turns
            await stream.send([part] * 12)
            assert turns - before >= 4
            nursery.cancel_scope.cancel()
        stream.close()


async def test_a_crowd_is_accepted_in_few_turns() -> None:
    """Everybody else's work goes on between two turns, and may take long."""
    listener = await TcpTransport().listen("127.0.0.1", 0, backlog=50)
    clients = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(40)]
    met = turns = 0

    async def meet(stream: Stream) -> None:
        nonlocal met
        met += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, meet)
        with trio.fail_after(10):
            while met < len(clients):
                turns += 1
                await trio.lowlevel.checkpoint()
        listener.close()
    for client in clients:
        client.close()
    assert turns < len(clients) / 2


async def test_an_unknown_host_is_an_os_error() -> None:
    with pytest.raises(socket.gaierror):
        await TcpTransport().connect("no-such-host.invalid", 9092)
