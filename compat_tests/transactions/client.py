"""What the tests ask of a client: a producer with a transactional id, and the values that a consumer is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType

from compat_tests.reading import Isolation

PATIENT_MS = 60_000
"""A transaction that no test means to time out."""


class Fenced(Exception):
    """The client says that another producer has its transactional id by now, or that its transaction timed out."""


class TransactionalProducer(AbstractContextManager["TransactionalProducer"]):
    """A producer that has made its transactional id its own; leaving it closes it as it is, the transaction open."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        """Returns when the record is acknowledged; raises Fenced."""

    @abstractmethod
    def send_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commits offsets, by partition, with the transaction; raises Fenced."""

    @abstractmethod
    def commit(self) -> None:
        """Raises Fenced."""

    @abstractmethod
    def abort(self) -> None:
        """Raises Fenced."""

    @abstractmethod
    def close(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Client(ABC):
    """A client library, talking to the broker at `bootstrap`."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def producer(self, transactional_id: str, timeout_ms: int = PATIENT_MS) -> TransactionalProducer: ...

    @abstractmethod
    def read(self, topic: str, isolation: Isolation = "read_committed", partitions: int = 1) -> list[bytes]:
        """The values that are to be seen now in that many partitions, each in its order."""

    @abstractmethod
    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        """The offset that the group has committed."""
