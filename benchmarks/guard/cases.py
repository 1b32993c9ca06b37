"""The requests that are counted, and what one of them costs."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import trio

from benchmarks.client import connect
from benchmarks.frames import decoded, encoded, received
from benchmarks.group_coordinator import await_coordinator
from benchmarks.loads import create_topic
from kwire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kwire.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import HEADER_SIZE, read_header, seal
from kwire.protocol.records.record import Record
from kwire.protocol.schema import Message
from kwire.testing.process import BrokerProcess

Costs = dict[str, float]
"""Of one request on an average, but for "bytes at most": what any needed beyond what was there before."""

REQUESTS = 500
_TOPIC = "counted"
_NAMING: dict[type[Message], int] = {ProduceRequest: 12, FetchRequest: 12, OffsetCommitRequest: 9}
"""The newest version of each API that names topics; those after it have ids, which Java's clients send."""
_ANSWERS = {ProduceRequest: ProduceResponse, FetchRequest: FetchResponse, OffsetCommitRequest: OffsetCommitResponse}
_PATIENCE_S = 60.0
_NEVER_MS = 24 * 3_600_000
_CHORES = (
    "log.retention.check.interval.ms",
    "log.flush.offset.checkpoint.interval.ms",
    "log.flush.start.offset.checkpoint.interval.ms",
    "replica.high.watermark.checkpoint.interval.ms",
)
"""What is done for all of a thousand logs from time to time, and would count where a busy machine takes longer: the
checkpoint of their high watermarks, written for the first time, needs 182 KB."""
_PAUSE_S = 0.002
"""Before each request: that the broker waits for it is a cost that there sometimes is and sometimes not otherwise."""


@dataclass(frozen=True)
class Case:
    """A request that is sent again and again, over one connection, each after the answer to the one before."""

    name: str
    request: Callable[[int, int], Message]
    """Its number, and the id of the fetch session that the first answer told."""
    partitions: int = 1
    batches: int = 0
    """Of 16 KiB, that are in the first partition."""
    waiting: Callable[[int, int], Message] | None = None
    """A request of another connection that waits for this one, made likewise; what it costs is counted too."""
    newest: bool = False
    """Whether it has the newest version that there is, instead of one that names topics."""
    commits: bool = False
    """Whether it is for a group's coordinator."""


def batch(records: int, compression: Compression = Compression.NONE) -> bytes:
    """Of records of 100 bytes."""
    return build_batch([Record(number, 0, None, bytes(100), []) for number in range(records)], compression=compression)


ONE, MANY = batch(1), batch(145)
"""The latter is of about 16 KiB."""
COMPRESSED = batch(2_000, Compression.LZ4)
_HEADER = read_header(MANY)


def produce(records: bytes, partitions: int = 1) -> Callable[[int, int], Message]:
    data = [PartitionProduceData(index=index, records=records) for index in range(partitions)]
    topics = [TopicProduceData(name=_TOPIC, partition_data=data)]
    return lambda number, session: ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)


def produce_idempotently(number: int, session: int) -> Message:
    """What Java's producer sends unless told otherwise: batches with sequences, acks=all."""
    records = MANY[HEADER_SIZE:]
    header = _HEADER._replace(producer_id=1, producer_epoch=0, base_sequence=number * _HEADER.count)
    data = [PartitionProduceData(index=0, records=seal(header, records) + records)]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=_TOPIC, partition_data=data)])


def fetch(number: int, session: int) -> Message:
    """Without a session, four batches of 16 KiB."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=65536)
    topics = [FetchTopic(topic=_TOPIC, partitions=[partition])]
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=65536, session_epoch=-1, topics=topics)


def fetch_nothing(partitions: int) -> Callable[[int, int], Message]:
    """In a session, to which only the first one tells the partitions."""

    def request(number: int, session: int) -> Message:
        told = [] if number else [FetchPartition(partition=at, fetch_offset=0) for at in range(partitions)]
        topics = [FetchTopic(topic=_TOPIC, partitions=told)] if told else []
        return FetchRequest(max_wait_ms=0, min_bytes=1, session_id=session, session_epoch=number, topics=topics)

    return request


def fetch_next(*, session: bool) -> Callable[[int, int], Message]:
    """The record that comes next where each request before it found one. Without a session as librdkafka asks."""

    def request(number: int, session_id: int) -> Message:
        partition = FetchPartition(partition=0, fetch_offset=number, partition_max_bytes=65536)
        asked = FetchRequest(
            max_wait_ms=30_000,
            min_bytes=1,
            session_id=session_id,
            session_epoch=number,
            topics=[FetchTopic(topic=_TOPIC, partitions=[partition])],
        )
        if not session:
            asked.session_id, asked.session_epoch, asked.isolation_level = 0, -1, 1
        return asked

    return request


def commit(partitions: int) -> Callable[[int, int], Message]:
    """A consumer's without a group of members, to which it would have to send heartbeats."""

    def request(number: int, session: int) -> Message:
        told = [OffsetCommitRequestPartition(partition_index=at, committed_offset=number) for at in range(partitions)]
        topics = [OffsetCommitRequestTopic(name=_TOPIC, partitions=told)]
        return OffsetCommitRequest(group_id=_TOPIC, topics=topics)

    return request


CASES = (
    Case("produce one record", produce(ONE)),
    Case("produce 16 KiB", produce(MANY)),
    Case("produce 16 KiB, idempotent, acks all", produce_idempotently),
    Case("produce a record to each of 10 partitions", produce(ONE, 10), partitions=10),
    Case("fetch 64 KiB", fetch, batches=8),
    Case("fetch nothing, 1 partition", fetch_nothing(1)),
    Case("fetch nothing, 1,000 partitions", fetch_nothing(1000), partitions=1000),
    Case("produce one record, for which a fetch waits", produce(ONE), waiting=fetch_next(session=True)),
    Case("the same without a fetch session, read_committed", produce(ONE), waiting=fetch_next(session=False)),
    Case("produce one record, by id", produce(ONE), newest=True),
    Case("produce 16 KiB, by id, idempotent, acks all", produce_idempotently, newest=True),
    Case("produce 2,000 records, by id, lz4", produce(COMPRESSED), newest=True),
    Case("fetch 64 KiB, by id", fetch, batches=8, newest=True),
    Case("fetch nothing, by id, 1,000 partitions", fetch_nothing(1000), partitions=1000, newest=True),
    Case(
        "produce one record, by id, for which a fetch waits",
        produce(ONE),
        waiting=fetch_next(session=True),
        newest=True,
    ),
    Case("commit an offset", commit(1), commits=True),
    Case("commit an offset of each of 10 partitions", commit(10), partitions=10, commits=True),
)


class _Counted(BrokerProcess):
    """A broker that counts; see `benchmarks.guard.serve`."""

    def __init__(self, counts: Path) -> None:
        super().__init__(dict.fromkeys(_CHORES, _NEVER_MS))
        self._counts = counts

    def command(self) -> list[str]:
        python, _, _, *rest = super().command()
        return [python, "-m", "benchmarks.guard.serve", str(self._counts), *rest]


class _Client:
    """One connection, and the requests that are made for it."""

    def __init__(
        self, broker: BrokerProcess, request: Callable[[int, int], Message], topic_id: bytes, *, newest: bool
    ) -> None:
        self._socket = socket.create_connection((broker.host, broker.port), _PATIENCE_S)
        self._request = request
        self._topic_id = topic_id
        self._newest = newest
        self._number = 0
        self._session = 0
        self._asked: Message
        self._last_offset = -1

    def begin(self) -> None:
        """Returns when the first request was taken."""
        answer = self.taken(self._request(0, 0))
        self._session = answer.session_id if isinstance(answer, FetchResponse) else 0
        self._number = 1

    def taken(self, request: Message) -> Message:
        """The answer to a request, which has no error."""
        self._ask(request)
        return self.answer()

    def ask(self) -> None:
        """Sends the next request."""
        self._ask(self._request(self._number, self._session))
        self._number += 1

    def _ask(self, request: Message) -> None:
        assert isinstance(request, ProduceRequest | FetchRequest | OffsetCommitRequest)
        self._asked = request
        for topic in request.topic_data if isinstance(request, ProduceRequest) else request.topics:
            topic.topic_id = self._topic_id
        self._socket.sendall(encoded(request, self._version))

    @property
    def _version(self) -> int:
        """Of what was asked last."""
        return self._asked.max_version if self._newest else _NAMING[type(self._asked)]

    def answer(self) -> Message:
        """Waits for the answer to what was asked, which has no error."""
        response = decoded(_ANSWERS[type(self._asked)], self._version, received(self._socket))
        if _errors(response) or (isinstance(response, ProduceResponse) and not self._is_new(response)):
            raise RuntimeError(f"not taken: {response}")
        return response

    def _is_new(self, response: ProduceResponse) -> bool:
        """Whether what was produced lies behind all that was produced before."""
        before, self._last_offset = self._last_offset, response.responses[0].partition_responses[0].base_offset
        return self._last_offset > before

    def close(self) -> None:
        self._socket.close()


def _errors(response: Message) -> list[int]:
    if isinstance(response, ProduceResponse):
        found = [each.error_code for topic in response.responses for each in topic.partition_responses]
    elif isinstance(response, FetchResponse):
        found = [each.error_code for topic in response.responses for each in topic.partitions] + [response.error_code]
    else:
        assert isinstance(response, OffsetCommitResponse)
        found = [each.error_code for topic in response.topics for each in topic.partitions]
    return [error for error in found if error]


def measure(case: Case) -> Costs:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as clients:
        counts = Path(folder) / "counts.json"
        with _Counted(counts) as broker:
            create_topic(broker.bootstrap, _TOPIC, case.partitions)
            topic_id = trio.run(_topic_id, broker.bootstrap)
            if case.commits:
                await_coordinator(broker.bootstrap)
            client = clients.enter_context(closing(_Client(broker, case.request, topic_id, newest=case.newest)))
            for _ in range(case.batches):
                client.taken(produce(MANY)(0, 0))
            client.begin()
            asking = [client]
            if case.waiting is not None:
                waiting = clients.enter_context(closing(_Client(broker, case.waiting, topic_id, newest=case.newest)))
                waiting.begin()
                asking.insert(0, waiting)
            _ask(asking, REQUESTS // 5)
            for _ in range(2):
                os.kill(broker.pid, signal.SIGUSR1)
                _ask(asking, REQUESTS)
            os.kill(broker.pid, signal.SIGUSR1)
            deadline = time.monotonic() + _PATIENCE_S
            while not counts.exists():
                if time.monotonic() > deadline:
                    raise TimeoutError("the broker did not tell what it counted")
                time.sleep(0.01)
        found = json.loads(counts.read_text())
    most = found.pop("bytes at most")
    return {**{name: count / REQUESTS for name, count in found.items()}, "bytes at most": most}


async def _topic_id(bootstrap: str) -> bytes:
    connection = await connect(bootstrap)
    told = await connection.call(MetadataRequest(topics=[MetadataRequestTopic(name=_TOPIC)]))
    connection.close()
    topic_id: bytes = told.topics[0].topic_id
    return topic_id


def _ask(clients: list[_Client], count: int) -> None:
    """Each asks, the first one first; the answers are read after that."""
    for _ in range(count):
        for client in clients:
            time.sleep(_PAUSE_S)
            client.ask()
        for client in clients:
            client.answer()
