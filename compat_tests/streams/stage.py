"""The topics of the two applications, and what they tell at the moment, read with a stock client."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

from confluent_kafka import Consumer, Producer, TopicPartition

from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import TIMEOUT
from compat_tests.reading import everything
from compat_tests.streams.book import Counts, Line, add, count
from kwire.testing.topics import create_topic

PARTITIONS = 3


class Stage:
    """The topics are there when it is made; the applications are NAME=GUARANTEE."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        run = f"streams-{time.time_ns()}"
        self.lines = f"{run}-lines"
        self.once, self.at_least_once = f"{run}-once", f"{run}-at-least-once"
        self.applications = (f"{self.once}=exactly_once_v2", f"{self.at_least_once}=at_least_once")
        create_topic(bootstrap, self.lines, PARTITIONS, {})
        for name in (self.once, self.at_least_once):
            for table in Counts._fields:
                create_topic(bootstrap, f"{name}-{table}", PARTITIONS, {})

    def write(self, lines: Sequence[Line]) -> None:
        """Returns when all lines are acknowledged."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True})
        for line in lines:
            producer.produce(self.lines, line.text, str(line.number), timestamp=line.read_at)
            producer.poll(0)
        assert producer.flush(TIMEOUT) == 0

    def told(self, name: str) -> Counts:
        """The tables of an application as those see them who read committed records alone."""
        return Counts(*(self._table(f"{name}-{table}") for table in Counts._fields))

    def passed_on(self, name: str) -> Counts:
        """How often the application has written each word to the topic between its two halves."""
        counts = Counts(Counter(), Counter(), Counter())
        for message in everything(self.bootstrap, f"{name}-by-word-repartition"):
            add(counts, message.value().decode(), message.timestamp()[1])
        return counts

    def check_all_told(self, lines: Sequence[Line]) -> None:
        """Fails unless both applications have told what comes of these lines."""
        wanted = count(lines)
        got = self._table(f"{self.at_least_once}-hours")
        assert got >= wanted.hours, f"too little: {(wanted.hours - got).most_common(5)}"
        got = self._table(f"{self.at_least_once}-words")
        assert got >= wanted.words, f"too little: {(wanted.words - got).most_common(5)}"
        for table, told, right in zip(Counts._fields, self.told(self.once), wanted, strict=True):
            wrong = [f"{key}: {told[key]}, not {right[key]}" for key in told | right if told[key] != right[key]]
            assert wrong == [], f"{table}: {len(wrong)} wrong, {wrong[:5]}"

    def check_all_committed(self) -> None:
        """Fails unless the application without transactions has committed the offsets of all that it was given."""
        group = self.at_least_once
        for topic in (self.lines, f"{group}-by-word-repartition"):
            offsets = ConfluentDriver(self.bootstrap).committed(group, topic, PARTITIONS)
            ends, committed = self.ends(topic), {number: offset or 0 for number, offset in enumerate(offsets)}
            assert committed == ends, f"committed {committed} of {ends} in {topic}"

    def ends(self, topic: str) -> dict[int, int]:
        """The offset after the last record of each partition, those of open transactions included."""
        with closing(Consumer({"bootstrap.servers": self.bootstrap, "group.id": "unused"})) as consumer:
            places = [TopicPartition(topic, n) for n in consumer.list_topics(topic, TIMEOUT).topics[topic].partitions]
            return {place.partition: consumer.get_watermark_offsets(place, TIMEOUT)[1] for place in places}

    def _table(self, topic: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        for message in everything(self.bootstrap, topic):
            counts[message.key().decode()] = int(message.value())
        return counts
