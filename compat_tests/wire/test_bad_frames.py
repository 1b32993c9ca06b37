"""What is not Kafka's protocol ends its own connection and nothing else."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.wire.raw import (
    API_VERSIONS,
    FETCH,
    LATEST_OF_NO_BROKER,
    METADATA,
    PRODUCE,
    ApiVersions,
    Closed,
    RawConnection,
    connected,
    frame,
    metadata_body,
    parse_api_versions,
    request,
    string,
)

UNSUPPORTED_VERSION = 35
GIGABYTE = 1 << 30
MEBIBYTE_IN_KIB = 1024

BAD = {
    "nothing in it": frame(b""),
    "a negative length": struct.pack(">i", -1),
    "the least length": struct.pack(">i", -(1 << 31)),
    "the greatest length": struct.pack(">i", (1 << 31) - 1) + b"x" * 100,
    "a gigabyte announced": struct.pack(">i", GIGABYTE) + b"x" * 100,
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("1603010200010001fc0303") + b"\x00" * 600,
    "half a header": frame(struct.pack(">hh", METADATA, 1)),
    "a client id beyond the frame": frame(struct.pack(">hhih", METADATA, 1, 7, 5000) + b"x"),
    "an unknown API": frame(request(12345, 0, b"")),
    "a negative API": frame(request(-1, 0, b"")),
    "a version too new": frame(request(METADATA, 99, metadata_body())),
    "a version no longer served": frame(request(FETCH, 0, b"")),
    "a negative version": frame(request(METADATA, -1, metadata_body())),
    "a truncated body": frame(request(METADATA, 1, metadata_body("topic")[:-2])),
    "no body": frame(request(METADATA, 1, b"")),
    "two thousand million topics": frame(request(METADATA, 1, struct.pack(">i", (1 << 31) - 1))),
    "a string beyond the frame": frame(request(METADATA, 1, struct.pack(">ih", 1, 32767) + b"short")),
    "records beyond the frame": frame(
        request(
            PRODUCE,
            3,
            string(None) + struct.pack(">hii", 1, 1000, 1) + string("topic") + struct.pack(">iii", 1, 0, GIGABYTE),
        )
    ),
}


@pytest.fixture
def steady(kwire_broker: Any) -> Iterator[RawConnection]:
    """A connection that was there before, and must be there after."""
    with connected(kwire_broker) as connection:
        connection.api_versions()
        yield connection
        assert connection.api_versions().error == 0


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_a_bad_frame_ends_its_connection(kwire_broker: Any, steady: RawConnection, data: bytes) -> None:
    with connected(kwire_broker) as connection:
        connection.send(data)

        assert connection.is_closed()


def test_what_follows_a_request_in_its_frame_is_ignored(kwire_broker: Any) -> None:
    """Kafka does so, and librdkafka's AlterUserScramCredentials depends on it."""
    with connected(kwire_broker) as connection:
        body = connection.call(METADATA, 1, metadata_body())

        assert connection.call(METADATA, 1, metadata_body() + b"\0") == body


def test_a_bad_frame_after_good_ones(kwire_broker: Any, steady: RawConnection) -> None:
    with connected(kwire_broker) as connection:
        assert connection.api_versions().error == 0
        connection.send(frame(request(API_VERSIONS, 0, b"", 8)) + BAD["an unknown API"])

        assert connection.is_closed()


@pytest.mark.parametrize("seed", range(5))
def test_random_bytes(kwire_broker: Any, steady: RawConnection, seed: int) -> None:
    source = random.Random(seed)
    for _ in range(20):
        with connected(kwire_broker) as connection:
            # The first byte makes the announced length one that no broker takes.
            connection.send(bytes([source.randrange(16, 256)]) + source.randbytes(source.randrange(3, 2000)))
            assert connection.is_closed()


def test_random_bodies_for_every_api(kwire_broker: Any, steady: RawConnection) -> None:
    """Each ends in an answer or in a closed connection."""
    source = random.Random(11)
    for api_key, (least, greatest) in steady.api_versions().ranges.items():
        for version in {least, greatest}:
            body = source.randbytes(source.choice([1, 7, 40, 300]))
            with connected(kwire_broker) as connection:
                connection.send(frame(request(api_key, version, body)))
                try:
                    connection.receive_frame()
                except Closed:
                    continue


@pytest.mark.parametrize("version", [5, 99, LATEST_OF_NO_BROKER])
def test_a_future_version_of_api_versions(kwire_broker: Any, version: int) -> None:
    """KIP-511: answered in version 0 with the error and the versions of ApiVersions itself; the body stays unread."""
    with connected(kwire_broker) as connection:
        connection.send(frame(request(API_VERSIONS, version, b"\x00 whatever a future version has")))
        answer = connection.receive()

        found = parse_api_versions(answer.body)
        assert answer.correlation_id == 7
        assert found == ApiVersions(UNSUPPORTED_VERSION, {API_VERSIONS: found.ranges[API_VERSIONS]})
        assert found.ranges[API_VERSIONS][0] == 0
        assert connection.api_versions().ranges[API_VERSIONS] == found.ranges[API_VERSIONS]


def test_a_request_byte_by_byte(kwire_broker: Any) -> None:
    with connected(kwire_broker) as connection:
        for byte in frame(request(API_VERSIONS, 0, b"")):
            connection.send(bytes([byte]))

        assert parse_api_versions(connection.receive().body).error == 0


def test_requests_in_one_write_are_answered_in_order(kwire_broker: Any) -> None:
    with connected(kwire_broker) as connection:
        connection.send(b"".join(frame(request(API_VERSIONS, 0, b"", number)) for number in range(200)))

        assert [connection.receive().correlation_id for _ in range(200)] == list(range(200))


def test_the_frame_limit(broker_with: Callable[..., Any]) -> None:
    """socket.request.max.bytes counts what follows the length; the limit itself is allowed."""
    broker = broker_with({"socket.request.max.bytes": 2000})
    with connected(broker) as connection:
        padding = 2000 - len(request(METADATA, 1, metadata_body("")))
        connection.call(METADATA, 1, metadata_body("x" * padding))
        connection.send(struct.pack(">i", 2001))

        assert connection.is_closed()


def test_memory_stays_flat(kwire_broker_factory: Callable[..., Any]) -> None:
    """Announced lengths and counts cost nothing until the bytes are there, and dead connections leave nothing."""
    broker = kwire_broker_factory()

    def attack(times: int) -> None:
        for _ in range(times):
            for data in BAD.values():
                with connected(broker) as connection:
                    connection.send(data)
                    assert connection.is_closed()

    attack(3)
    before = resident_kib(broker.pid)
    attack(30)
    waiting = [RawConnection(broker.host, broker.port) for _ in range(50)]
    for connection in waiting:
        connection.send(struct.pack(">i", 90_000_000) + b"x")
    with connected(broker) as connection:
        assert connection.api_versions().error == 0

    assert resident_kib(broker.pid) - before < 32 * MEBIBYTE_IN_KIB
    for connection in waiting:
        connection.close()


def resident_kib(pid: int) -> int:
    """VmRSS of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"process {pid} has no VmRSS")
