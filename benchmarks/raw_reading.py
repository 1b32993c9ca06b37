"""Fetches as large as can be, one after the other: a socket whose content is received and thrown away.

It asks for the same records all the time, as a librdkafka consumer asks: of each partition a MiB, 50 MiB together, in
no session. The client copies what comes into one buffer and does nothing else, so that it is seldom the limit.
"""

from __future__ import annotations

import socket
import time

from benchmarks.frames import decoded, encoded, received, size_received
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

PARTITION_BYTES = 1 << 20
ANSWER_BYTES = 50 << 20
_VERSION = 12
_PATIENCE_S = 30.0


class Reading:
    """Reads the first MiB of so many partitions of the topic, as often as `run` has time for."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        host, port = bootstrap.rsplit(":", 1)
        asked = [FetchPartition(partition=i, partition_max_bytes=PARTITION_BYTES) for i in range(partitions)]
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=ANSWER_BYTES,
            topics=[FetchTopic(topic=topic, partitions=asked)],
        )
        self._frame = encoded(request, _VERSION)
        self._connection = socket.create_connection((host, int(port)), _PATIENCE_S)
        self._place = memoryview(bytearray(1 << 18))

    def check(self) -> None:
        """Raises RuntimeError unless one fetch brings records enough."""
        self._connection.sendall(self._frame)
        partitions = decoded(FetchResponse, _VERSION, received(self._connection)).responses[0].partitions
        found = sum(len(partition.records or b"") for partition in partitions)
        if any(partition.error_code for partition in partitions) or found < ANSWER_BYTES * 9 // 10:
            raise RuntimeError(f"{found} bytes came of {ANSWER_BYTES}")

    def run(self, seconds: float) -> list[float]:
        """How long (s) each fetch took that was asked for within that time."""
        waits: list[float] = []
        clock, connection, place = time.perf_counter, self._connection, self._place
        ends = clock() + seconds
        while (asked := clock()) < ends:
            connection.sendall(self._frame)
            left = size_received(connection)
            while left:
                received = connection.recv_into(place, min(left, len(place)))
                if not received:
                    raise ConnectionError("the broker closed the connection")
                left -= received
            waits.append(clock() - asked)
        return waits

    def close(self) -> None:
        self._connection.close()
