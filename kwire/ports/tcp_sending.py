"""Sending on a connected TCP socket as far as the kernel takes it, without waiting."""

from __future__ import annotations

import errno
import os
import socket
from typing import Final

from kwire.ports.files import Buffer, FileSlice
from kwire.ports.runs import rest_of
from kwire.ports.transport import StreamClosed

SENDFILE_BYTES: Final = 1024 * 1024
"""About so much is sent from files before other tasks get their turn."""

IOV_MAX: Final = min(os.sysconf("SC_IOV_MAX") if "SC_IOV_MAX" in os.sysconf_names else 1024, 1024)
"""The most buffers one sendmsg may carry."""

_NO_SENDFILE: Final = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}
_CORK: int | None = getattr(socket, "TCP_CORK", None)


class Sending:
    """One socket's. Each call sends what there is room for, and says what is left; each may raise OSError."""

    __slots__ = ("_socket", "corked", "sent")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.sent = 0
        """Bytes, in all."""
        self.corked = False
        """Whether the system waits for more before it sends what fills no packet."""

    def send(self, data: bytes) -> memoryview | None:
        """Returns what is left."""
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        self.sent += sent
        return memoryview(data)[sent:] if sent < len(data) else None

    def offer(self, buffers: list[Buffer]) -> list[Buffer]:
        """Returns what is left."""
        sock = self._socket
        left = sum(map(len, buffers))
        while left:
            window = buffers if len(buffers) <= IOV_MAX else buffers[:IOV_MAX]
            try:
                sent = sock.send(window[0]) if len(window) == 1 else sock.sendmsg(window)
            except BlockingIOError:
                return buffers
            self.sent += sent
            left -= sent
            if left:
                buffers = rest_of(buffers, sent)
        return []

    def offer_slice(self, part: FileSlice) -> FileSlice | None:
        """Sends some of it; returns what is left.

        Raises BlockingIOError where that is everything, CannotSendfile, StreamClosed where the file ends before.
        """
        if not part.size:  # which is "all there is" to some systems
            return None
        descriptor = part.file.fileno()
        if descriptor is None:
            raise CannotSendfile
        try:
            sent = os.sendfile(self._socket.fileno(), descriptor, part.position, min(part.size, SENDFILE_BYTES))
        except OSError as error:
            if error.errno in _NO_SENDFILE:
                raise CannotSendfile from None
            raise
        if sent == 0:
            raise StreamClosed(f"{part.file.path} ends before byte {part.position + part.size}")
        self.sent += sent
        return FileSlice(part.file, part.position + sent, part.size - sent) if sent < part.size else None

    def cork(self, corked: bool) -> None:
        if _CORK is not None and corked is not self.corked:
            self._socket.setsockopt(socket.IPPROTO_TCP, _CORK, int(corked))
        self.corked = corked


class CannotSendfile(Exception):
    """The file has no descriptor, or its file system can't do it: it has to be read and sent."""
