"""Reading back what a job wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from spark_jobs.tests.producing import Sent


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


def published(bootstrap: str, topic: str) -> list[Sent]:
    """All that the topic has, aborted or not, each partition in its order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([confluent_kafka.TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        found: list[Sent] = []
        ended: set[int] = set()
        while len(ended) < len(partitions):
            for message in consumer.consume(10_000, timeout=1):
                error = message.error()
                if error is None:
                    key, value, headers = message.key(), message.value(), tuple(message.headers() or ())
                    found.append(Sent(message.partition(), key, value, headers, message.timestamp()[1]))
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise KafkaException(error)
        return found
    finally:
        consumer.close()
