"""What an operation of a state machine answers with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from kwire.protocol.errors import KafkaError
from kwire.protocol.schema import Message
from kwire.storage.verification import VerificationGuard

T = TypeVar("T")


class Now(NamedTuple):
    """The time of an operation."""

    wall_ms: int
    """Since the Unix epoch: for what is stored."""
    ms: int
    """Of a clock that never goes back: for deadlines."""


class CoordinatorRecord(NamedTuple):
    """A record of an internal topic, decoded. A value of None is a tombstone."""

    key: Message
    value: Message | None
    version: int = 0
    """The version in which the value is written; what was read has the version it was read in."""


class Producer(NamedTuple):
    """A transactional producer."""

    id: int
    epoch: int


class Marker(NamedTuple):
    """The end of a producer's transaction on the coordinator's partition."""

    producer: Producer
    commit: bool
    coordinator_epoch: int
    transaction_version: int
    """The transaction.version by which the log checks its epoch."""


class Pending(Generic[T]):
    """A response that is not there yet: a later operation gives it."""

    __slots__ = ("_then", "result")

    def __init__(self) -> None:
        self.result: T | KafkaError | None = None
        self._then: list[Callable[[], None]] = []

    @property
    def done(self) -> bool:
        return self.result is not None

    def answer(self, result: T | KafkaError) -> None:
        """Gives the response, or the error in its place. Only the first answer counts."""
        if self.result is None:
            self.result = result
            calls, self._then = self._then, []
            for call in calls:
                call()

    def then(self, call: Callable[[], None]) -> None:
        """Calls `call` when the answer is there, at once if it is."""
        if self.result is None:
            self._then.append(call)
        else:
            call()


@dataclass(slots=True)
class Outcome(Generic[T]):
    """The response, which leaves when the records are committed, and the records, which are appended in one batch.

    `response`: the response itself, or one that another operation will give.
    `producer`: the records belong to this producer's transaction; `verification`: with what the log takes them.
    `marker`: instead of records, a marker that ends a transaction.
    `replay`: False where the operation has changed the state itself, so that the records are not replayed into it.
    `committed`, `failed`: called when the records are committed, or could not be appended (the timeline is back by
    then), before anybody gets a response. They may answer pending responses and set deadlines.
    """

    response: T | Pending[T]
    records: Sequence[CoordinatorRecord] = ()
    producer: Producer | None = None
    verification: VerificationGuard | None = None
    marker: Marker | None = None
    replay: bool = True
    committed: Callable[[Now], None] | None = None
    failed: Callable[[KafkaError, Now], None] | None = None

    @property
    def writes(self) -> bool:
        """Whether there is something to append."""
        return bool(self.records) or self.marker is not None
