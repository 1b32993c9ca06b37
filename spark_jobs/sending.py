"""Rows as records of a topic by librdkafka: with times, which Spark's own sink can't set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

Sender = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]

_DEFAULTS = {"enable.idempotence": True, "linger.ms": 50, "partitioner": "murmur2_random"}


def sender(settings: dict[str, Any], topic: str, *, by_key: bool) -> Sender:
    """For `mapInArrow`: writes rows of key, value, headers, partition and time (milliseconds since 1970); gives how
    many, and what went wrong first.

    An error is given rather than raised: a task that fails is run again by Spark, from its first record.
    """

    def send(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from confluent_kafka import KafkaException, Producer

        errors: list[str] = []
        written = 0

        def delivered(error: Any, message: Any) -> None:
            nonlocal written
            if error is None:
                written += 1
            else:
                errors.append(error.str())

        try:
            producer = Producer({**_DEFAULTS, **settings, "on_delivery": delivered})
            for batch in batches:
                for record in batch.to_pylist():
                    headers = [(header["key"], header["value"]) for header in record["headers"] or ()]
                    place = {} if by_key else {"partition": record["partition"]}
                    # Its queue is full where the brokers are slower than this.
                    while not errors and not _accepted(producer, topic, record, headers, place):
                        producer.poll(0.1)
                    if errors:
                        break
                producer.poll(0)
                if errors:
                    producer.purge()
                    break
            while producer.flush(1) and not errors:
                pass
        except KafkaException as error:
            errors.append(error.args[0].str())
        yield pa.RecordBatch.from_pylist(
            [{"records": written, "error": errors[0] if errors else None}],
            pa.schema([("records", pa.int64()), ("error", pa.string())]),
        )

    return send


def _accepted(producer: Any, topic: str, record: dict, headers: list, place: dict[str, int]) -> bool:
    try:
        producer.produce(
            topic, key=record["key"], value=record["value"], headers=headers, timestamp=record["time"], **place
        )
    except BufferError:
        return False
    return True
