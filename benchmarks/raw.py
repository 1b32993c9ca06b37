"""Produce requests as small and as often as can be: sockets, one poll, and the same encoded request all the time.

Each connection has one request of one batch under way, as a producer that waits for each acknowledgement. The client
takes some 10 µs of CPU a request: on two cores a broker of several threads has at most what is left of them.
"""

from __future__ import annotations

import select
import socket
import time

from benchmarks.frames import decoded, encoded, received
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.record import Record

_VERSION = 9
_PATIENCE_S = 30.0


class Producers:
    """So many connections, each with one request under way while `run` runs.

    Each request is of `records` records of `size` bytes, for partition 0 of the topic.
    """

    def __init__(self, bootstrap: str, topic: str, connections: int, *, records: int = 1, size: int = 100) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._frame = produce_frame(topic, records, size)
        # Length, correlation id, tags, arrays of one, the topic's name, its partition, no error: what comes before the
        # offset is the same in each answer that accepts a batch.
        self._same = 4 + 4 + 1 + 1 + 1 + len(topic) + 1 + 4 + 2
        self._accepted = b""
        self.answers: list[bytes] = []
        """The first one that accepted a batch, whole."""
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        for _ in range(connections):
            connection = socket.create_connection((host, int(port)), _PATIENCE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets[connection.fileno()] = connection
            self._poll.register(connection, select.EPOLLIN)
        self._send_first()

    def _send_first(self) -> None:
        connection = next(iter(self._sockets.values()))
        connection.sendall(self._frame)
        answer = received(connection)
        if not _accepted(answer):
            raise RuntimeError(f"not accepted: {answer!r}")
        self.answers, self._accepted = [answer], answer[: self._same]

    def run(self, seconds: float) -> list[float]:
        """How long (s) each request took that was sent within that time, in the order of the answers.

        Raises TimeoutError where none comes for 30 s.
        """
        waits: list[float] = []
        frame, sockets, clock, accepted = self._frame, self._sockets, time.perf_counter, self._accepted
        sent: dict[int, float] = {}
        ends = clock() + seconds
        for descriptor, connection in sockets.items():
            sent[descriptor] = clock()
            connection.sendall(frame)
        while sent:
            answered = self._poll.poll(_PATIENCE_S)
            if not answered:
                raise TimeoutError(f"{len(sent)} requests were not answered within {_PATIENCE_S} s")
            for descriptor, _ in answered:
                connection = sockets[descriptor]
                answer = connection.recv(65536)
                now = clock()
                if not answer.startswith(accepted):
                    raise RuntimeError(f"not accepted: {answer!r}")
                waits.append(now - sent[descriptor])
                if now < ends:
                    sent[descriptor] = now
                    connection.sendall(frame)
                else:
                    del sent[descriptor]
        return waits

    def close(self) -> None:
        for connection in self._sockets.values():
            connection.close()
        self._poll.close()


def produce_frame(topic: str, records: int, size: int) -> bytes:
    """A Produce of one batch to partition 0, acks=all, with its size in front."""
    now = int(time.time() * 1000)
    batch = build_batch([Record(number, now, None, bytes(size), []) for number in range(records)])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])],
    )
    return encoded(request, _VERSION)


def _accepted(answer: bytes) -> bool:
    return decoded(ProduceResponse, _VERSION, answer).responses[0].partition_responses[0].error_code == 0
