"""Reading back what a job wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord


def records(bootstrap: str, topic: str) -> Iterator[ConsumerRecord]:
    """Every record that the topic has now, each partition in its order."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, fetch_max_wait_ms=100)
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for batch in consumer.poll(timeout_ms=1000).values():
                yield from batch
    finally:
        consumer.close()


def count(bootstrap: str, topic: str) -> int:
    """How many records the topic has, if none has been deleted and none is of a transaction."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        return sum(consumer.end_offsets(partitions).values())
    finally:
        consumer.close()


def last_values(bootstrap: str, topic: str) -> dict[str, dict]:
    """The last value of each key, taken apart as JSON."""
    return {record.key.decode(): json.loads(record.value) for record in records(bootstrap, topic)}
