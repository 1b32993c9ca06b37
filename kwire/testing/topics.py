"""Topic creation over a plain blocking socket: callable from any test, whatever event loop it runs in."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from kwire.protocol.errors import ErrorCode, KafkaError

TIMEOUT = 30.0


def create_topic(bootstrap: str, name: str, partitions: int, configs: Mapping[str, object]) -> None:
    """Creates a topic with one replica and returns when it can be used; raises KafkaError where that is refused."""
    body = struct.pack(">i", 1) + _string(name) + struct.pack(">ihii", partitions, 1, 0, len(configs))
    for key, value in configs.items():
        body += _string(key) + _string(str(value).lower() if isinstance(value, bool) else str(value))
    body += struct.pack(">i?", int(TIMEOUT * 1000), False)
    request = struct.pack(">hhi", 19, 4, 1) + _string("kwire-testing") + body
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT) as connection, connection.makefile("rb") as responses:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", responses.read(4))
        response = responses.read(size)
    (length,) = struct.unpack_from(">h", response, 12)
    code, message_length = struct.unpack_from(">hh", response, 14 + length)
    if code:
        raise KafkaError(ErrorCode(code), response[18 + length : 18 + length + max(0, message_length)].decode())


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
