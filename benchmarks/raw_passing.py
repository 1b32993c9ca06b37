"""Records one by one to a reader that waits for each: sockets, and nothing else that would cost the client much."""

from __future__ import annotations

import socket
import time

from benchmarks.frames import decoded, encoded, received
from benchmarks.raw import produce_frame
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

_VERSION = 12
_PATIENCE_S = 30.0


class Passing:
    """A producer of `rate` records of 100 bytes a second, acks=all, and a reader with a fetch that waits for the next
    one, in a session. Partition 0 of the topic, which is empty at first."""

    def __init__(self, bootstrap: str, topic: str, rate: float) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self._topic = topic
        self._rate = rate
        self._frame = produce_frame(topic, 1, 100)
        self._producer, self._reader = (socket.create_connection((host, int(port)), _PATIENCE_S) for _ in range(2))
        for connection in (self._producer, self._reader):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._session = self._epoch = self._offset = 0
        self.answers: list[bytes] = []
        """The first ones to a Produce and to a Fetch, whole."""
        self._begin()

    def _begin(self) -> None:
        """Passes the first record on, which begins the session, and has a fetch wait for the next one."""
        self._ask()
        self._producer.sendall(self._frame)
        self.answers = [received(self._producer), received(self._reader)]
        response = decoded(FetchResponse, _VERSION, self.answers[1])
        if not (response.responses and response.responses[0].partitions[0].records):
            raise RuntimeError(f"the record was not passed on: {response}")
        self._session, self._epoch, self._offset = response.session_id, 1, 1
        self._ask()

    def _ask(self) -> None:
        partition = FetchPartition(partition=0, fetch_offset=self._offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=30_000,
            min_bytes=1,
            session_id=self._session,
            session_epoch=self._epoch,
            topics=[FetchTopic(topic=self._topic, partitions=[partition])],
        )
        self._reader.sendall(encoded(request, _VERSION))

    def run(self, seconds: float) -> list[float]:
        """How long (s) it took each record to get to the reader, in their order."""
        waits: list[float] = []
        clock = time.perf_counter
        due = clock()
        ends = due + seconds
        while due < ends:
            time.sleep(max(0.0, due - clock()))
            sent = clock()
            self._producer.sendall(self._frame)
            received(self._producer)
            received(self._reader)
            waits.append(clock() - sent)
            self._offset += 1
            self._epoch += 1
            self._ask()
            due += 1 / self._rate
        return waits

    def close(self) -> None:
        self._producer.close()
        self._reader.close()
