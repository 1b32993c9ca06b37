"""The two brokers, asked the same things.

A test is a scenario: a function that is run once with each `Side`. What a side answers to `ask` goes into its
transcript, and `Both.agree` compares the two transcripts step by step.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from compat_tests.oracle.deviations import DEVIATIONS, Deviation
from compat_tests.oracle.normal import Names, differences, tree
from jvm.apache_kafka import ApacheKafka
from kwire.protocol import codec
from kwire.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from kwire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.schema import Message
from kwire.testing.process import BrokerProcess

TIMEOUT = 30.0
"""Seconds for one response, and for Apache Kafka to let a change be seen."""
POLL = 0.01
"""Seconds between two looks at whether Apache Kafka has taken a change over."""
NOTHING_SAID = "<no response>"
CLOSED = "<connection closed>"


class Closed(Exception):
    """The broker closed the connection."""


class Step(NamedTuple):
    """One thing that a side was asked, and its answer as a tree."""

    name: str
    answer: Any


class Address(Protocol):
    host: str
    port: int


class Wire:
    """One connection to a broker, for one request at a time."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection((address.host, address.port), TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._responses = self.socket.makefile("rb")
        self._correlation_id = 0

    def send(self, message: Message, version: int) -> None:
        """Raises Closed."""
        header = encode_request_header(RequestHeader(message.api_key, version, self._next_id(), "oracle"))
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


class Side:
    """One broker in one scenario."""

    def __init__(self, address: Address, *, eventual: bool, prefix: str, now_ms: int) -> None:
        self._address = address
        self._eventual = eventual
        self._prefix = prefix
        self._wire: Wire | None = None
        self._ids: dict[str, bytes] = {}
        self.now = now_ms
        """The time (ms) at which the scenario began, the same for both."""
        self.names = Names(address.host, address.port, now_ms)
        self.steps: list[Step] = []

    # Asking

    def ask(
        self,
        request: Message,
        version: int | None = None,
        *,
        note: str = "",
        until: Callable[[Any], bool] | None = None,
        but: Iterable[str] = (),
    ) -> Any:
        """Sends the request, in its newest version unless another is asked for, and records the answer.

        `until` says of a response whether it shows what was changed before: Apache Kafka, which takes changes over
        after it answered for them, is asked again until it does. Fields named in `but` are left out of the record.
        Returns the response, or None where the connection was closed.
        """
        version = request.max_version if version is None else version
        name = f"{type(request).__name__.removesuffix('Request')} v{version}{f' ({note})' if note else ''}"
        try:
            response = self.call(request, version, until=until)
        except Closed:
            self.close()
            self.record(name, CLOSED)
            return None
        answer = tree(response, self.names)
        for path in but:
            _drop(answer, path.split("."))
        self.record(name, answer)
        return response

    def send(self, request: Message, version: int | None = None) -> None:
        """Sends the request; the answer is for `receive`. Raises Closed."""
        self.wire.send(request, request.max_version if version is None else version)

    def receive(self, request: Message, version: int | None = None) -> Any:
        """Records and returns the answer to a request that was sent. Raises Closed."""
        version = request.max_version if version is None else version
        response = self.wire.receive(response_type_of(request), version)
        self.record(f"{type(request).__name__.removesuffix('Request')} v{version}", tree(response, self.names))
        return response

    def record_response(self, name: str, response: Message) -> None:
        """Adds a response that the scenario cut down to what can be compared."""
        self.record(name, tree(response, self.names))

    def record(self, name: str, answer: Any) -> None:
        """Adds to the transcript what a scenario found out by other means."""
        self.steps.append(Step(f"{len(self.steps) + 1}: {name}", answer))

    def call(self, request: Message, version: int | None = None, *, until: Callable[[Any], bool] | None = None) -> Any:
        """The same without a record of it; raises Closed."""
        version = request.max_version if version is None else version
        response_type = response_type_of(request)
        deadline = time.monotonic() + TIMEOUT
        while True:
            self.wire.send(request, version)
            response = self.wire.receive(response_type, version)
            if until is None or until(response):
                return response
            assert self._eventual, f"{response} does not show what was changed"
            assert time.monotonic() < deadline, f"{response} never showed what was changed"
            time.sleep(POLL)

    @property
    def wire(self) -> Wire:
        """The scenario's connection to this broker."""
        if self._wire is None:
            self._wire = Wire(self._address)
        return self._wire

    @contextmanager
    def another_connection(self) -> Iterator[None]:
        """While it lasts, what is asked goes over a second connection."""
        first, self._wire = self._wire, None
        try:
            yield
        finally:
            self.close()
            self._wire = first

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    # Topics

    def name(self, label: str = "topic") -> str:
        """A topic name that only this scenario uses."""
        return f"{self._prefix}-{label}"

    def topic(self, label: str = "topic", partitions: int = 1, **configs: str) -> str:
        """Creates a topic (config names with '_' for '.'); returns its name when it can be used."""
        name = self.name(label)
        response = self.call(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(
                        name=name,
                        num_partitions=-1,
                        replication_factor=-1,
                        assignments=[
                            CreatableReplicaAssignment(partition_index=index, broker_ids=[1])
                            for index in range(partitions)
                        ],
                        configs=[
                            CreatableTopicConfig(name=key.replace("_", "."), value=value)
                            for key, value in configs.items()
                        ],
                    )
                ],
                timeout_ms=30_000,
            )
        )
        (created,) = response.topics
        assert not created.error_code, created
        self.settle_topic(name, partitions)
        return name

    def settle_topic(self, name: str, partitions: int) -> bytes:
        """Waits until the topic has its partitions and each answers; returns its id."""
        metadata = self.call(
            MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False),
            12,
            until=lambda answer: len(answer.topics[0].partitions) == partitions,
        )
        self.call(
            ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    ListOffsetsTopic(
                        name=name,
                        partitions=[
                            ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)
                        ],
                    )
                ],
            ),
            until=lambda answer: not any(item.error_code for item in answer.topics[0].partitions),
        )
        topic_id = metadata.topics[0].topic_id
        self._ids[name] = topic_id
        self.names.topic(topic_id, name)
        return topic_id

    def id_of(self, topic: str) -> bytes:
        """The id of a topic that was settled; that of any other is made up."""
        return self._ids.get(topic, b"no such topic id")


class Both:
    """Runs scenarios with both brokers."""

    def __init__(self, kafka: ApacheKafka, kwire: BrokerProcess) -> None:
        self.kafka = kafka
        self.kwire = kwire
        self._scenarios = 0

    def sides(self, prefix: str) -> list[Side]:
        """Apache Kafka and kwire, for a scenario whose topics' names begin so; the caller closes them."""
        now_ms = int(time.time() * 1000)
        return [
            Side(self.kafka, eventual=True, prefix=prefix, now_ms=now_ms),
            Side(self.kwire, eventual=False, prefix=prefix, now_ms=now_ms),
        ]

    def agree(self, scenario: Callable[[Side], None], *deviations: str) -> None:
        """Fails where the brokers answered differently, and where one of the named deviations did not show."""
        __tracebackhide__ = True
        self._scenarios += 1
        prefix = f"{re.sub('[^a-z0-9]+', '-', scenario.__qualname__.split('.')[0].lower())}-{self._scenarios}"
        sides = self.sides(prefix)

        def run(side: Side) -> Sequence[Step]:
            try:
                scenario(side)
            finally:
                side.close()
            return side.steps

        with ThreadPoolExecutor(len(sides)) as pool:
            kafkas, kwires = pool.map(run, sides)
        problems = judge(kafkas, kwires, [DEVIATIONS[name] for name in deviations])
        assert not problems, "\n".join(problems)


def judge(kafkas: Sequence[Step], kwires: Sequence[Step], allowed: Sequence[Deviation]) -> list[str]:
    """A line for each difference that no deviation allows, and for each deviation that explains none."""
    assert [step.name for step in kafkas] == [step.name for step in kwires]
    problems = []
    unused = {deviation.name: deviation for deviation in allowed}
    for one, other in zip(kafkas, kwires, strict=True):
        for path, theirs, ours in differences(one.answer, other.answer):
            where = f"{one.name} {path}"
            reason = next((deviation for deviation in allowed if deviation.covers(where, theirs, ours)), None)
            if reason is None:
                problems.append(f"{where}:\n    Apache Kafka {theirs!r}\n    kwire        {ours!r}")
            else:
                unused.pop(reason.name, None)
    return problems + [f"no difference is left of the deviation {name!r}" for name in unused]


def response_type_of(request: Message) -> type[Message]:
    """The response class that belongs to a request's."""
    kind = type(request)
    return getattr(import_module(kind.__module__), kind.__name__.removesuffix("Request") + "Response")


def _drop(answer: Any, path: list[str]) -> None:
    """Removes the field at the path ('*': every item)."""
    if isinstance(answer, list):
        for item in answer:
            _drop(item, path)
    elif isinstance(answer, dict):
        if len(path) == 1:
            answer.pop(path[0], None)
        else:
            for key in list(answer) if path[0] == "*" else [path[0]]:
                _drop(answer.get(key), path[1:])
