"""`python -m benchmarks.arrivals BOOTSTRAP TOPIC`: how old records are when a consumer (librdkafka) gets them.

The value of a record is the time that it counts from, in µs of the epoch, in digits, or 0 where it does not count.
Begins at the end of the topic; prints a line when it begins, and when its input ends "COUNT P50 P99 P99.9 LONGEST", in
ms, of all records that count and were in the topic by then. Fails where they do not come within 30 s.
"""

from __future__ import annotations

import sys
import threading
import time

from confluent_kafka import Consumer, TopicPartition

from benchmarks.quantile import quantile

_PATIENCE_S = 30.0


def main(bootstrap: str, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "arrivals", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions

    def ends() -> dict[int, int]:
        """The high watermarks."""
        return {index: consumer.get_watermark_offsets(TopicPartition(topic, index), 30)[1] for index in partitions}

    reached = ends()
    consumer.assign([TopicPartition(topic, index, offset) for index, offset in reached.items()])
    over = threading.Event()

    def until_told() -> None:
        sys.stdin.readline()
        over.set()

    threading.Thread(target=until_told, daemon=True).start()
    print("begun", flush=True)
    ages: list[float] = []
    wanted: dict[int, int] = {}
    deadline = 0.0
    while not wanted or any(reached[index] < offset for index, offset in wanted.items()):
        if over.is_set() and not wanted:
            wanted, deadline = ends(), time.monotonic() + _PATIENCE_S
        if wanted and time.monotonic() > deadline:
            sys.exit(f"records up to offsets {reached} came within {_PATIENCE_S} s, of {wanted}")
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error() is not None:
            raise RuntimeError(str(message.error()))
        if since := int(message.value()):
            ages.append((time.time_ns() / 1000 - since) / 1000)
        reached[message.partition()] = message.offset() + 1
    ages.sort()
    print(len(ages), *(quantile(ages, share) for share in (0.5, 0.99, 0.999)), ages[-1])


main(sys.argv[1], sys.argv[2])
