"""What the suites ask of a client, and the terms that they ask it in.

A driver does each thing the way that client's users do it, and turns what the client reports into these types. Each
call opens a client of its own and closes it, so that tests share nothing and a call may run in a thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from kwire.protocol.errors import ErrorCode

TIMEOUT = 30.0
"""Seconds that a single call may take on a busy machine."""

Header = tuple[str, bytes | None]
Acks = Literal["0", "1", "all"]
Reset = Literal["none", "earliest", "latest"]


class Refused(Exception):
    """The broker answered with an error code, or the client gave up with one of its own that means the same."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(f"{ErrorCode(code).name} {message}")
        self.code = ErrorCode(code)


@dataclass(frozen=True)
class Record:
    """A record to produce; `timestamp` in ms, None for the client's own clock."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None
    partition: int = 0


@dataclass(frozen=True)
class Received:
    """A record as a consumer got it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp: int
    partition: int
    offset: int
    log_append_time: bool

    @classmethod
    def of(cls, record: Any) -> Received:
        """Of a ConsumerRecord, whose parts kafka-python and aiokafka name alike."""
        return cls(
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
            timestamp=record.timestamp,
            partition=record.partition,
            offset=record.offset,
            log_append_time=record.timestamp_type == 1,
        )


class Bounds(NamedTuple):
    """The first offset of a partition and the one after its last."""

    begin: int
    end: int


@dataclass(frozen=True)
class TopicLayout:
    """A topic as metadata has it: the replicas of each partition, the leader first."""

    replicas: tuple[tuple[int, ...], ...]
    internal: bool = False


@dataclass(frozen=True)
class Setting:
    """A value of a topic or broker config, and whether somebody set it there."""

    value: str | None
    overridden: bool


@dataclass(frozen=True)
class Sending:
    """How to produce.

    `largest` raises the client's limit on a request to that many bytes, `patience` is how long it may try, in seconds.
    """

    compression: str = "none"
    acks: Acks = "all"
    idempotent: bool = False
    largest: int | None = None
    patience: float = TIMEOUT


@dataclass(frozen=True)
class Reading:
    """How to consume: the first offset of each partition, and where to go on from when an offset does not exist."""

    starts: Mapping[int, int]
    reset: Reset = "none"
    largest: int | None = None
    timeout: float = TIMEOUT


@dataclass(frozen=True)
class NewTopic:
    """A topic to create; `assignment` has the replicas of each partition, and then the two numbers do not count."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignment: Sequence[Sequence[int]] | None = None
    validate_only: bool = False


class Driver(ABC):
    """Producing, consuming and looking up offsets."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def at(self, bootstrap: str) -> Driver:
        """The same client at another broker."""
        return type(self)(bootstrap)

    def produce(self, topic: str, records: Sequence[Record], **options: Any) -> list[int]:
        """Produces in order, the options being those of Sending; returns the offset of each record.

        An offset is -1 where the client learns none, as with acks 0. Raises Refused.
        """
        return self._produce(topic, records, Sending(**options))

    def consume(self, topic: str, count: int, *, start: int | Mapping[int, int] = 0, **options: Any) -> list[Received]:
        """The next `count` records from an offset of partition 0, or from one of each; fewer after a time-out.

        The options are those of Reading. Raises Refused where an offset does not exist and `reset` is "none".
        """
        return self._consume(topic, count, Reading({0: start} if isinstance(start, int) else start, **options))

    @abstractmethod
    def _produce(self, topic: str, records: Sequence[Record], how: Sending) -> list[int]: ...

    @abstractmethod
    def _consume(self, topic: str, count: int, how: Reading) -> list[Received]: ...

    @abstractmethod
    def bounds(self, topic: str, partition: int = 0) -> Bounds:
        """The offsets between which a partition's records are."""

    @abstractmethod
    def offset_at(self, topic: str, timestamp: int, partition: int = 0) -> int | None:
        """The first offset whose record has at least this timestamp; None where none has."""


class Admin(ABC):
    """Administration of topics and of their configs. Every method raises Refused where the broker does."""

    def create_topic(self, name: str, **options: Any) -> None:
        """The options are those of NewTopic."""
        self._create_topic(NewTopic(name, **options))

    @abstractmethod
    def _create_topic(self, topic: NewTopic) -> None: ...

    @abstractmethod
    def delete_topic(self, name: str) -> None: ...

    @abstractmethod
    def create_partitions(self, topic: str, total: int) -> None: ...

    @abstractmethod
    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        """Deletes what is before an offset, -1 for all; returns the new first offset."""

    @abstractmethod
    def describe_topic(self, name: str) -> TopicLayout: ...

    @abstractmethod
    def topic_names(self) -> set[str]: ...

    @abstractmethod
    def brokers(self) -> set[tuple[int, str, int]]:
        """Id, host and port of each."""

    @abstractmethod
    def topic_configs(self, topic: str) -> dict[str, Setting]: ...

    @abstractmethod
    def replace_topic_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        """The old AlterConfigs: what is not named goes back to its default."""


class IncrementalAdmin(ABC):
    """What only the clients that know newer APIs can do."""

    @abstractmethod
    def change_configs(self, kind: str, name: str, changes: Iterable[tuple[str, str, str | None]]) -> None:
        """IncrementalAlterConfigs of a "topic" or "broker".

        A change is an operation (set, delete, append or subtract), a key and a value.
        """

    @abstractmethod
    def broker_configs(self, broker: str) -> dict[str, Setting]: ...

    @abstractmethod
    def list_offset(self, topic: str, spec: int, partition: int = 0) -> int:
        """ListOffsets by timestamp, or by -1 latest, -2 earliest, -3 that of the largest timestamp."""
