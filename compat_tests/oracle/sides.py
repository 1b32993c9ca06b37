"""One of the two brokers, as a scenario sees it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from compat_tests.oracle.normal import Names, tree
from compat_tests.oracle.wire import TIMEOUT, Address, Closed, Wire, response_type_of
from kwire.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kwire.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kwire.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kwire.protocol.schema import Message

PATIENCE = TIMEOUT
"""Seconds for Apache Kafka to let a change be seen."""
POLL = 0.01
"""Seconds between two looks at whether it does."""
CLOSED = "<connection closed>"


class Step(NamedTuple):
    """One thing that a side was asked, and its answer as a tree."""

    name: str
    answer: Any


class Side:
    """One broker in one scenario."""

    def __init__(self, address: Address, *, eventual: bool, prefix: str, now_ms: int) -> None:
        self._address = address
        self._eventual = eventual
        self._prefix = prefix
        self._wire: Wire | None = None
        self._others: list[Wire] = []
        self._ids: dict[str, bytes] = {}
        self.now = now_ms
        """The time (ms) at which the scenario began, the same for both."""
        self.names = Names(address.host, address.port, now_ms)
        self.steps: list[Step] = []

    @property
    def address(self) -> str:
        """HOST:PORT"""
        return f"{self._address.host}:{self._address.port}"

    @property
    def is_kafka(self) -> bool:
        """Whether it is Apache Kafka."""
        return self._eventual

    def __repr__(self) -> str:
        return "Apache Kafka" if self.is_kafka else "kwire"

    # Asking

    def ask(
        self,
        request: Message,
        version: int | None = None,
        *,
        note: str = "",
        until: Callable[[Any], bool] | None = None,
    ) -> Any:
        """Sends the request, in its newest version unless another is asked for, and records the answer.

        `until` says of a response whether it shows what was changed before: Apache Kafka, which takes changes over
        after it answered for them, is asked again until it does. Returns the response, or None where the connection
        was closed.
        """
        version = request.max_version if version is None else version
        name = f"{type(request).__name__.removesuffix('Request')} v{version}{f' ({note})' if note else ''}"
        try:
            response = self.call(request, version, until=until)
        except Closed:
            self.close()
            self.record(name, CLOSED)
            return None
        self.record_response(name, response)
        return response

    def send(self, request: Message, version: int | None = None) -> None:
        """Sends the request; the answer is for `receive`. Raises Closed."""
        self.wire.send(request, request.max_version if version is None else version)

    def receive(self, request: Message, version: int | None = None) -> Any:
        """Records and returns the answer to a request that was sent. Raises Closed."""
        version = request.max_version if version is None else version
        response = self.wire.receive(response_type_of(request), version)
        self.record_response(f"{type(request).__name__.removesuffix('Request')} v{version}", response)
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
        deadline = time.monotonic() + PATIENCE
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

    def connect(self, client_id: str) -> Wire:
        """A connection of its own for a client of that id, which the side closes with its own."""
        wire = Wire(self._address, client_id)
        self._others.append(wire)
        return wire

    def close(self) -> None:
        while self._others:
            self._others.pop().close()
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
