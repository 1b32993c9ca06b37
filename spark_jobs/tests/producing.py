"""Writing what a job is to read: records with all that they can have, in transactions too."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from confluent_kafka import Producer


class Sent(NamedTuple):
    """A record as it is sent."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0
    """ms; 0 for the moment."""

    @property
    def row(self) -> dict[str, Any]:
        """The value, taken apart as JSON."""
        assert self.value is not None
        return json.loads(self.value)


def send(bootstrap: str, topic: str, records: Iterable[Sent]) -> None:
    """Each partition gets its records in this order, and all are there when this returns."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20})
    pass_on(producer, topic, records)
    assert producer.flush(60) == 0


def send_in_transaction(bootstrap: str, topic: str, records: Iterable[Sent], *, commit: bool) -> None:
    """The same in one transaction, which ends so; its records are in the log before."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-producer"})
    producer.init_transactions(30)
    producer.begin_transaction()
    pass_on(producer, topic, records)
    assert producer.flush(60) == 0
    producer.commit_transaction(30) if commit else producer.abort_transaction(30)


def pass_on(producer: Producer, topic: str, records: Iterable[Sent]) -> None:
    """Hands them to a producer that the caller flushes."""
    for record in records:
        while True:
            try:
                producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    timestamp=record.timestamp,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
