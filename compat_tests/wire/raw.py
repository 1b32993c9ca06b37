"""Kafka's frames byte by byte, on a plain socket: for what no client would send, and to see what lies behind a client.

Written with struct alone, so that nothing here can share a mistake with the broker's own codec.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

TIMEOUT = 20.0

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
LATEST_OF_NO_BROKER = 32000


class Closed(Exception):
    """The broker closed the connection."""


class Answer(NamedTuple):
    correlation_id: int
    body: bytes


class ApiVersions(NamedTuple):
    error: int
    ranges: dict[int, tuple[int, int]]


class RawConnection:
    """One connection; requests go out with the correlation ids that the test gives them."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), TIMEOUT)

    def send(self, data: bytes) -> None:
        """Raises Closed where the broker no longer listens."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed from error

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def receive(self) -> Answer:
        """An answer with the simple response header."""
        frame = self.receive_frame()
        return Answer(struct.unpack_from(">i", frame)[0], frame[4:])

    def call(self, api_key: int, version: int, body: bytes, correlation_id: int = 7) -> bytes:
        self.send(frame(request(api_key, version, body, correlation_id)))
        answer = self.receive()
        assert answer.correlation_id == correlation_id
        return answer.body

    def api_versions(self) -> ApiVersions:
        return parse_api_versions(self.call(API_VERSIONS, 0, b""))

    def is_closed(self) -> bool:
        """Waits for the broker to close the connection, reading what it still says; False after the time-out."""
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def has_answer(self) -> bool:
        """Whether there is something to read right now."""
        self.socket.setblocking(False)
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(TIMEOUT)

    def close(self) -> None:
        self.socket.close()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                chunk = self.socket.recv(min(size - len(data), 1 << 20))
            except ConnectionError as error:
                raise Closed from error
            if not chunk:
                raise Closed
            data += chunk
        return bytes(data)


@contextmanager
def connected(broker: object) -> Iterator[RawConnection]:
    connection = RawConnection(broker.host, broker.port)  # type: ignore[attr-defined]
    try:
        yield connection
    finally:
        connection.close()


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def string(text: str | None) -> bytes:
    return struct.pack(">h", -1) if text is None else struct.pack(">h", len(text.encode())) + text.encode()


def request(api_key: int, version: int, body: bytes, correlation_id: int = 7) -> bytes:
    """A request with header version 1, that of all versions used here."""
    return struct.pack(">hhi", api_key, version, correlation_id) + string("raw") + body


def metadata_body(*topics: str) -> bytes:
    """Of version 1."""
    return struct.pack(">i", len(topics)) + b"".join(map(string, topics))


def fetch_body(topic: str, offset: int = 0, *, max_wait_ms: int = 0, min_bytes: int = 0, partition: int = 0) -> bytes:
    """Of version 4: one partition."""
    head = struct.pack(">iiiib", -1, max_wait_ms, min_bytes, 50_000_000, 0)
    return head + struct.pack(">i", 1) + string(topic) + struct.pack(">iiqi", 1, partition, offset, 50_000_000)


def parse_api_versions(body: bytes) -> ApiVersions:
    """Of version 0."""
    error, count = struct.unpack_from(">hi", body)
    entries = struct.iter_unpack(">hhh", body[6:])
    ranges = {key: (least, greatest) for key, least, greatest in entries}
    assert len(ranges) == count
    return ApiVersions(error, ranges)


def fetched_records(body: bytes) -> tuple[int, bytes]:
    """The error code and the record batches of the one partition in an answer to `fetch_body`."""
    (name_length,) = struct.unpack_from(">h", body, 8)
    at = 10 + name_length + 4
    _partition, error, _high_watermark, _stable, aborted = struct.unpack_from(">ihqqi", body, at)
    at += 26 + 16 * max(0, aborted)
    (size,) = struct.unpack_from(">i", body, at)
    return error, body[at + 4 : at + 4 + max(0, size)]


def codecs(records: bytes) -> list[int]:
    """The compression of each batch: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
    found, at = [], 0
    while at + 61 <= len(records):
        (length,) = struct.unpack_from(">i", records, at + 8)
        found.append(struct.unpack_from(">h", records, at + 21)[0] & 0x07)
        at += 12 + length
    return found
