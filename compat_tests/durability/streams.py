"""A producer that goes on while its broker goes down and comes back, one class a client."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping

from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaProducer

from compat_tests.driver import TIMEOUT

BACK_SOON_MS = 50
"""Between tries to reach the broker again."""


class Stream(ABC):
    """Sends values in order, retrying for as long as it takes, and knows which of them were acknowledged where."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, int] = {}
        """The offset of each value that the broker acknowledged, by its place among the values sent."""
        self.failures: list[object] = []

    @abstractmethod
    def send(self, place: int, value: bytes, key: bytes | None = None) -> None: ...

    @abstractmethod
    def poll(self) -> None:
        """Lets acknowledgements come in for a moment."""

    @abstractmethod
    def finish(self) -> None:
        """Waits until everything is acknowledged or has failed."""

    def wait_for(self, acknowledged: int) -> None:
        """Waits until that many values are acknowledged."""
        deadline = time.monotonic() + TIMEOUT
        while len(self.acknowledged) < acknowledged:
            assert time.monotonic() < deadline, (
                f"only {len(self.acknowledged)} acknowledged, failed: {self.failures[:3]}"
            )
            self.poll()


class ConfluentStream(Stream):
    def __init__(
        self, bootstrap: str, topic: str, *, idempotent: bool, settings: Mapping[str, object] | None = None
    ) -> None:
        super().__init__()
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": idempotent,
                "acks": "all",
                "batch.num.messages": 50,
                "reconnect.backoff.ms": BACK_SOON_MS,
                "reconnect.backoff.max.ms": 4 * BACK_SOON_MS,
                "retry.backoff.ms": BACK_SOON_MS,
                "log_level": 0,
                **(settings or {}),
            }
        )

    def send(self, place: int, value: bytes, key: bytes | None = None) -> None:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.acknowledged[place] = message.offset()
            else:
                self.failures.append(error)

        self._producer.produce(self._topic, value, key, partition=0, on_delivery=report)
        self._producer.poll(0)

    def poll(self) -> None:
        self._producer.poll(0.01)

    def finish(self) -> None:
        self._producer.flush(2 * TIMEOUT)


class KafkaPythonStream(Stream):
    def __init__(self, bootstrap: str, topic: str, *, idempotent: bool) -> None:
        super().__init__()
        self._topic = topic
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=idempotent,
            acks="all",
            batch_size=4000,
            reconnect_backoff_ms=BACK_SOON_MS,
            reconnect_backoff_max_ms=4 * BACK_SOON_MS,
            retry_backoff_ms=BACK_SOON_MS,
        )

    def send(self, place: int, value: bytes, key: bytes | None = None) -> None:
        future = self._producer.send(self._topic, value, key, partition=0)
        future.add_callback(lambda report: self.acknowledged.__setitem__(place, report.offset))
        future.add_errback(self.failures.append)

    def poll(self) -> None:
        time.sleep(0.01)

    def finish(self) -> None:
        self._producer.flush(2 * TIMEOUT)
        self._producer.close()
