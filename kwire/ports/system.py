"""The ports of a broker on a real machine."""

from __future__ import annotations

import socket

from kwire.ports.bundle import Ports
from kwire.ports.clock import SystemClock
from kwire.ports.executor import ThreadExecutor
from kwire.ports.randomness import SystemRandomness
from kwire.ports.real_files import PosixFileSystem
from kwire.ports.tcp import TcpTransport
from kwire.ports.worker_processes import ProcessWorkers


def system_ports(*, threads: int, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1) -> Ports:
    """Real clocks, files and sockets, and at most `threads` worker threads. Buffer sizes of -1 are the system's own."""
    return Ports(
        clock=SystemClock(),
        randomness=SystemRandomness(),
        executor=ThreadExecutor(threads),
        workers=ProcessWorkers(),
        transport=TcpTransport(send_buffer_bytes=send_buffer_bytes, receive_buffer_bytes=receive_buffer_bytes),
        files=PosixFileSystem(),
        host_name=socket.getfqdn,
    )
