"""`python -m benchmarks.arrivals BOOTSTRAP TOPIC`: how old records are when a consumer (librdkafka) gets them.

The value of a record is the time that it counts from, in µs of the epoch, in digits. Begins at the end of the topic;
prints a line when it begins, and when its input ends "P50 P99 P99.9 LONGEST", in ms.
"""

from __future__ import annotations

import sys
import threading
import time

from confluent_kafka import OFFSET_END, Consumer, TopicPartition


def main(bootstrap: str, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "arrivals", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_END) for number in partitions])
    over = threading.Event()

    def until_told() -> None:
        sys.stdin.readline()
        over.set()

    threading.Thread(target=until_told, daemon=True).start()
    print("begun", flush=True)
    ages: list[float] = []
    while not over.is_set():
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error() is not None:
            raise RuntimeError(str(message.error()))
        ages.append((time.time_ns() / 1000 - int(message.value())) / 1000)
    ages.sort()
    print(*(ages[int(len(ages) * share)] for share in (0.5, 0.99, 0.999)), ages[-1])


main(sys.argv[1], sys.argv[2])
