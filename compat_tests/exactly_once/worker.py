"""A worker of the pipeline.

    python -m compat_tests.exactly_once.worker BOOTSTRAP GROUP SOURCE TARGET TRANSACTIONAL_ID

It consumes a few records, and in one transaction produces them, sends its offsets and commits. It ends with the first
error that its client does not get over by itself, its transaction open: whoever runs it starts it again.
"""

from __future__ import annotations

import os
import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

BATCH = 5
"""Records in a transaction at the most."""
CALL_TIMEOUT = 20.0
"""Seconds for one step of a transaction, which waits out a restart of the broker."""
RECONNECT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    # Where all brokers are gone, librdkafka 2.16 otherwise forgets them, and waits for ever for one it has forgotten.
    "metadata.recovery.strategy": "none",
}


def run(bootstrap: str, group: str, source: str, target: str, transactional_id: str) -> None:
    """Copies until it is killed; raises KafkaException."""
    common = {"bootstrap.servers": bootstrap, "log_level": 0, **RECONNECT}
    producer = Producer(
        {**common, "transactional.id": transactional_id, "transaction.timeout.ms": 30_000, "linger.ms": 0}
    )
    producer.init_transactions(CALL_TIMEOUT)
    membership = {"group.id": group, "session.timeout.ms": 2000, "heartbeat.interval.ms": 300}
    reading = {"isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer = Consumer({**common, **membership, **reading, "max.poll.interval.ms": 30_000})
    batch: list[Message] = []
    # What was taken from partitions that are another worker's by now is that worker's to copy.
    consumer.subscribe([source], on_revoke=lambda *_: batch.clear(), on_lost=lambda *_: batch.clear())
    while True:
        message = consumer.poll(0 if batch else 0.1)
        if message is not None:
            if message.error() is not None:
                raise KafkaException(message.error())
            batch.append(message)
        if len(batch) == BATCH or (batch and message is None):
            _copy(batch, producer, target, consumer.consumer_group_metadata())
            batch.clear()


def _copy(batch: list[Message], producer: Producer, target: str, member: object) -> None:
    producer.begin_transaction()
    ends: dict[tuple[str, int], int] = {}
    for message in batch:
        producer.produce(target, message.value(), message.key())
        ends[message.topic(), message.partition()] = message.offset() + 1
    offsets = [TopicPartition(topic, partition, end) for (topic, partition), end in ends.items()]
    producer.send_offsets_to_transaction(offsets, member, CALL_TIMEOUT)
    producer.commit_transaction(CALL_TIMEOUT)


if __name__ == "__main__":
    try:
        run(*sys.argv[1:])
    except KafkaException as error:
        print(error, file=sys.stderr, flush=True)
        # As a crash would: the client's clean-up waits for a transaction that is not going to end.
        os._exit(1)
