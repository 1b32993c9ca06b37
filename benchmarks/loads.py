"""The loads: Apache Kafka's own ProducerPerformance and a librdkafka consumer, the same for both brokers."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass

from jvm.apache_kafka import tool_command

_RATE = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")
_TIMEOUT = 600.0
"""Seconds after which a load counts as failed."""


@dataclass(frozen=True, slots=True)
class Produce:
    """One produce load: `records` of `size` bytes to a topic of `partitions`, with `acks`."""

    records: int
    size: int
    partitions: int
    acks: str
    batch_size: int = 16384
    """The Java client's default."""

    @property
    def name(self) -> str:
        plural = "partition" if self.partitions == 1 else "partitions"
        return f"produce {self.size} B, {self.partitions} {plural}, acks {self.acks}"

    def run(self, bootstrap: str, topic: str) -> float:
        """Records per second, as ProducerPerformance reports them over the whole run."""
        command = tool_command(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", str(self.records), "--record-size", str(self.size)),
            *("--throughput", "-1", "--command-property", f"bootstrap.servers={bootstrap}"),
            *(f"acks={self.acks}", f"batch.size={self.batch_size}"),
        )
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_TIMEOUT).stdout
        rates = _RATE.findall(output)
        if not rates or int(rates[-1][0]) != self.records:
            raise RuntimeError(f"ProducerPerformance did not send {self.records} records: {output[-500:]}")
        return float(rates[-1][1])


def create_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Creates a topic and waits until clients can use it."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
    deadline = time.monotonic() + 30
    while topic not in admin.list_topics(timeout=10).topics:
        if time.monotonic() > deadline:
            raise RuntimeError(f"topic {topic} did not appear within 30 s")


def consume(bootstrap: str, topic: str, partitions: int, records: int) -> float:
    """Records per second of a librdkafka consumer that reads the topic from its beginning."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            # Once so much waits to be consumed, librdkafka fetches nothing for a whole second (fetch.queue.backoff.ms):
            # the sooner a broker answers, the longer its consumer would stand still.
            "queued.min.messages": 10_000_000,
            "queued.max.messages.kbytes": 2_000_000,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
        seen, started = 0, time.monotonic()
        while seen < records:
            messages = consumer.consume(10_000, timeout=1.0)
            failures = [str(message.error()) for message in messages if message.error() is not None]
            if failures:
                raise RuntimeError(failures[0])
            seen += len(messages)
            if time.monotonic() > started + _TIMEOUT:
                raise RuntimeError(f"only {seen} of {records} records came within {_TIMEOUT} s")
        return seen / (time.monotonic() - started)
    finally:
        consumer.close()
