"""Requests and answers as they lie on a connection, each behind its size, for clients that are but a socket."""

from __future__ import annotations

import socket
from struct import pack, unpack_from
from typing import TypeVar

from kwire.protocol import codec
from kwire.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from kwire.protocol.schema import Message

_SIZE = 4
"""Bytes that the size in front of a request or an answer takes."""
_CHUNK = 65536

M = TypeVar("M", bound=Message)


def encoded(request: Message, version: int) -> bytes:
    """The whole request, with the correlation id 1."""
    header = encode_request_header(RequestHeader(request.api_key, version, 1, "benchmark"))
    body = header + codec.encode(request, version)
    return pack(">i", len(body)) + body


def received(connection: socket.socket) -> bytes:
    """The whole answer to the only request that is under way. Raises ConnectionError where the broker hangs up."""
    data = connection.recv(_CHUNK)
    if _is_whole(data):
        return data
    held = bytearray(data)
    while not _is_whole(held):
        data = connection.recv(_CHUNK)
        if not data:
            raise ConnectionError("the broker closed the connection")
        held += data
    return bytes(held)


def size_received(connection: socket.socket) -> int:
    """The size of the next answer, of which nothing else is received. Raises ConnectionError likewise."""
    held = b""
    while len(held) < _SIZE:
        data = connection.recv(_SIZE - len(held))
        if not data:
            raise ConnectionError("the broker closed the connection")
        held += data
    (size,) = unpack_from(">i", held)
    return int(size)


def _is_whole(answer: bytes | bytearray) -> bool:
    """Whether all of it is there."""
    return len(answer) >= _SIZE and len(answer) >= _SIZE + unpack_from(">i", answer)[0]


def decoded(response_type: type[M], version: int, answer: bytes) -> M:
    """The response in a whole answer."""
    _, body_at = decode_response_header(response_type.api_key, version, memoryview(answer)[_SIZE:])
    return codec.decode(response_type, version, answer, _SIZE + body_at)
