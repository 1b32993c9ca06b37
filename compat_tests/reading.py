"""A whole topic, read by a stock client as far as its isolation level lets it see."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Literal

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from compat_tests.driver import TIMEOUT

Isolation = Literal["read_committed", "read_uncommitted"]


def everything(bootstrap: str, topic: str, isolation: Isolation = "read_committed") -> Iterator[Message]:
    """Every record that the topic has now, each partition in its order."""
    settings = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
    with closing(
        Consumer({"bootstrap.servers": bootstrap, "isolation.level": isolation, "log_level": 0, **settings})
    ) as consumer:
        left = set(consumer.list_topics(topic, TIMEOUT).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
        deadline = time.monotonic() + TIMEOUT
        while left:
            assert time.monotonic() < deadline, f"no end of {topic} in sight"
            for message in consumer.consume(1000, 0.2):
                error = message.error()
                if error is None:
                    # What others append meanwhile is not of now.
                    if message.partition() in left:
                        yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise KafkaException(error)
