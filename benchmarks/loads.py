"""The loads: Apache Kafka's own ProducerPerformance and a librdkafka consumer, the same for both brokers."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_RATE = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")


@dataclass(frozen=True, slots=True)
class Produce:
    """One produce load: `records` of `size` bytes to a topic of `partitions`, with `acks`."""

    records: int
    size: int
    partitions: int
    acks: str
    batch_size: int = 16384

    @property
    def name(self) -> str:
        plural = "partition" if self.partitions == 1 else "partitions"
        return f"produce {self.size} B, {self.partitions} {plural}, acks {self.acks}, batch {self.batch_size // 1024} KiB"

    def run(self, classpath: str, bootstrap: str, topic: str) -> float:
        """Records per second, as ProducerPerformance reports them over the whole run."""
        command = [
            "java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classpath,
            "org.apache.kafka.tools.ProducerPerformance",
            "--topic", topic, "--num-records", str(self.records), "--record-size", str(self.size),
            "--throughput", "-1", "--command-property", f"bootstrap.servers={bootstrap}",
            f"acks={self.acks}", f"batch.size={self.batch_size}",
        ]  # fmt: skip
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
        rates = _RATE.findall(output)
        if not rates:
            raise RuntimeError(f"ProducerPerformance printed no rate: {output[-500:]}")
        sent, rate = rates[-1]
        if int(sent) != self.records:
            raise RuntimeError(f"ProducerPerformance sent {sent} of {self.records} records")
        return float(rate)


def consume(bootstrap: str, topic: str, partitions: int, records: int) -> float:
    """Records per second of a librdkafka consumer that reads the topic from its beginning."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
            "queued.min.messages": 500_000,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
        seen, started = 0, 0.0
        deadline = time.monotonic() + 300
        while seen < records:
            messages = consumer.consume(10_000, timeout=1.0)
            if not started and messages:
                started = time.monotonic()
            for message in messages:
                if message.error() is not None:
                    raise RuntimeError(str(message.error()))
            seen += len(messages)
            if time.monotonic() > deadline:
                raise RuntimeError(f"only {seen} of {records} records came in 300 s")
        return seen / (time.monotonic() - started)
    finally:
        consumer.close()


def warm_up(classpath: str, bootstrap: str, topics: Sequence[str]) -> None:
    """Tens of thousands of records to each topic, so that the next step measures a running broker."""
    for topic in topics:
        Produce(50_000, 100, 1, "1").run(classpath, bootstrap, topic)


def classpath_of(jars: Path) -> str:
    return f"{jars}/*"
