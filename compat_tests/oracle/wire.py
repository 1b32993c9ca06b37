"""A plain connection to a broker, with the codec of kwire's own protocol room."""

from __future__ import annotations

import socket
from importlib import import_module
from typing import Protocol

from kwire.protocol import codec
from kwire.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from kwire.protocol.schema import Message

TIMEOUT = 30.0
"""Seconds for one response."""


class Closed(Exception):
    """The broker closed the connection."""


class Address(Protocol):
    host: str
    port: int


class Wire:
    """One connection to a broker, for one request at a time."""

    def __init__(self, address: Address, client_id: str = "oracle") -> None:
        self.client_id = client_id
        self.socket = socket.create_connection((address.host, address.port), TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._responses = self.socket.makefile("rb")
        self._correlation_id = 0

    def send(self, message: Message, version: int) -> None:
        """Raises Closed."""
        header = encode_request_header(RequestHeader(message.api_key, version, self._next_id(), self.client_id))
        self.send_frame(header + codec.encode(message, version))

    def send_frame(self, frame: bytes) -> None:
        """Raises Closed."""
        try:
            self.socket.sendall(len(frame).to_bytes(4) + frame)
        except OSError as error:
            raise Closed from error

    def receive(self, kind: type[Message], version: int) -> Message:
        """The next response. Raises Closed."""
        frame = self.receive_frame()
        correlation_id, body = decode_response_header(kind.api_key, version, frame)
        assert correlation_id == self._correlation_id
        return codec.decode(kind, version, memoryview(frame)[body:])

    def receive_frame(self) -> bytes:
        """The next response's bytes. Raises Closed."""
        try:
            size = self._responses.read(4)
            data = self._responses.read(int.from_bytes(size))
        except ConnectionError as error:
            raise Closed from error
        if len(size) < 4:
            raise Closed
        return data

    def close(self) -> None:
        self._responses.close()
        self.socket.close()

    def _next_id(self) -> int:
        self._correlation_id += 1
        return self._correlation_id


def response_type_of(request: Message) -> type[Message]:
    """The response class that belongs to a request's."""
    kind = type(request)
    return getattr(import_module(kind.__module__), kind.__name__.removesuffix("Request") + "Response")
