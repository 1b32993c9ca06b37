"""The loads: Apache Kafka's own ProducerPerformance and a librdkafka consumer, the same for both brokers."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from jvm.apache_kafka import tool_command

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo

DEFAULT_BATCH = 16384
"""Bytes: what the Java client has unless told otherwise."""
_SUMMARY = re.compile(
    r"(\d+) records sent, ([\d.]+) records/sec.*? (\d+) ms 50th, \d+ ms 95th, (\d+) ms 99th, (\d+) ms 99\.9th"
)
LOAD_TIMEOUT = 600.0
"""Seconds after which a load counts as failed."""
_NUMBERS = count()
_AT_ONCE = 10_000
"""Records that are asked of a consumer."""
_WATCHED_S, _PATIENCE_S = 2.0, 30.0
_IN_TIME_S = 0.1
"""A load that is so little late is in time: that much may wait in the producer."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What ProducerPerformance tells of a run: from its first record, its buffer empty, until all were acknowledged."""

    records_per_s: float
    p50_ms: float
    """From handing a record to the producer to its callback: whole ms, what it waits in the producer included."""
    p99_ms: float
    p999_ms: float


@dataclass(frozen=True, slots=True)
class Produce:
    """One produce load: `records` of `size` bytes to a topic of `partitions`, with `acks`."""

    records: int
    size: int
    partitions: int
    acks: str
    batch_size: int = DEFAULT_BATCH
    compression: str = "none"
    transactional: bool = False
    """In transactions of 100 ms."""
    limited: bool = False
    """Of a topic that refuses timestamps of a day ago: kwire looks at each record then, Apache Kafka always."""

    @property
    def name(self) -> str:
        plural = "partition" if self.partitions == 1 else "partitions"
        name = f"{self.size} B, {self.partitions} {plural}, acks {self.acks}"
        if self.batch_size != DEFAULT_BATCH:
            name += f", batches of {self.batch_size >> 10} KiB"
        if self.compression != "none":
            name += f", {self.compression}"
        name += ", transactions" if self.transactional else ""
        return name + (", timestamps limited" if self.limited else "")

    @property
    def topic_config(self) -> dict[str, str]:
        """Of the topic that it is sent to."""
        return {"message.timestamp.before.max.ms": "86400000"} if self.limited else {}

    def run(self, bootstrap: str, topic: str) -> Sent:
        """Raises RuntimeError where not all records were sent, CalledProcessError where the producer failed."""
        command = self.command(bootstrap, topic)
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LOAD_TIMEOUT).stdout
        return self.reported(output)

    def reported(self, output: str) -> Sent:
        """What ProducerPerformance printed."""
        summary = _SUMMARY.search(output)
        if summary is None or int(summary[1]) != self.records:
            raise RuntimeError(f"ProducerPerformance did not send {self.records} records: {output[-500:]}")
        return Sent(*map(float, summary.groups()[1:]))

    def command(self, bootstrap: str, topic: str, rate: int = -1) -> list[str]:
        """What runs it in a JVM of its own, at so many records/s or as fast as it can."""
        return tool_command("org.apache.kafka.tools.ProducerPerformance", *self.arguments(bootstrap, topic, rate))

    def arguments(self, bootstrap: str, topic: str, rate: int = -1) -> list[str]:
        """Of ProducerPerformance."""
        transactions = ["--transactional-id", f"benchmark-{topic}", "--transaction-duration-ms", "100"]
        return [
            *("--topic", topic, "--num-records", str(self.records), "--record-size", str(self.size)),
            *("--throughput", str(rate), *(transactions if self.transactional else [])),
            *("--command-property", f"bootstrap.servers={bootstrap}", f"acks={self.acks}"),
            *(f"batch.size={self.batch_size}", f"compression.type={self.compression}"),
        ]

    @contextmanager
    def beside(self, bootstrap: str, topic: str, rate: int) -> Iterator[None]:
        """The load goes on within, at so many records/s, or as many as the broker takes.

        ProducerPerformance is throttled to so many since its start: what it missed while its JVM was cold it sends as
        fast as it can. That is waited for, 30 s at most.
        """
        output = subprocess.DEVNULL
        with subprocess.Popen(self.command(bootstrap, topic, rate), stdout=output, stderr=output) as process:
            try:
                deadline = time.monotonic() + _PATIENCE_S
                while not records_in(bootstrap, topic, self.partitions):
                    if time.monotonic() > deadline:
                        raise RuntimeError(f"the load did not begin within {_PATIENCE_S} s")
                    time.sleep(0.05)
                began = time.monotonic()
                while (lasted := time.monotonic() - began) < _PATIENCE_S:
                    due = (lasted - _IN_TIME_S) * rate
                    if lasted > _WATCHED_S and records_in(bootstrap, topic, self.partitions) >= due:
                        break
                    time.sleep(0.1)
                yield
                if process.poll() is not None:
                    raise RuntimeError(f"the load ended too early, with {process.returncode}")
            finally:
                process.kill()


def new_topic(bootstrap: str, partitions: int, config: Mapping[str, str] | None = None) -> str:
    """Creates a topic that no other measure has; its name."""
    topic = f"measured-{next(_NUMBERS)}"
    create_topic(bootstrap, topic, partitions, config)
    return topic


def create_topic(bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    """Creates a topic and waits until each partition is led.

    That comes after the metadata tell of a leader, and what is sent with acks=0 in between is lost.
    """
    from confluent_kafka.admin import NewTopic

    admin = _admin(bootstrap)
    admin.create_topics([NewTopic(topic, partitions, 1, config=dict(config or {}))])[topic].result(30)
    deadline = time.monotonic() + _PATIENCE_S
    # A failure that is raised keeps these frames and the client in them, which goes on to look for its broker when
    # that has ended.
    while failures := [error for end in _log_ends(admin, topic, partitions) if (error := end.exception()) is not None]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"topic {topic} was not led within {_PATIENCE_S} s") from failures[0]
        time.sleep(0.02)


def records_in(bootstrap: str, topic: str, partitions: int) -> int:
    """How many were ever produced to it, by its log end offsets. Raises KafkaException where a partition is not led."""
    admin = _admin(bootstrap)  # it is to live until it has answered: what is asked of one that ends never comes
    return sum(end.result().offset for end in _log_ends(admin, topic, partitions))


def _log_ends(admin: AdminClient, topic: str, partitions: int) -> list[Future[ListOffsetsResultInfo]]:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    asked = {TopicPartition(topic, index): OffsetSpec.latest() for index in range(partitions)}
    return list(admin.list_offsets(asked, request_timeout=10).values())


def _admin(bootstrap: str) -> AdminClient:
    """One that is silent of what librdkafka only informs of, such as an event that is left over when a client ends."""
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 5})


def delete_topics(bootstrap: str) -> None:
    """Deletes all topics that clients made."""
    admin = _admin(bootstrap)
    topics = [topic for topic in admin.list_topics(timeout=30).topics if not topic.startswith("__")]
    for deleted in admin.delete_topics(topics).values() if topics else ():
        deleted.result(30)


def consume(bootstrap: str, topic: str, partitions: int, records: int, consumers: int = 1) -> float:
    """Records per second of librdkafka consumers that each read the topic from its beginning, all of them together.

    From their first connection to the last record.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    readers = [
        Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "benchmark",
                "enable.auto.commit": False,
                # As soon as queued.min.messages wait to be consumed, librdkafka fetches nothing for a whole second by
                # default: the sooner a broker answers, the longer its consumer would stand still.
                "fetch.queue.backoff.ms": 1,
            }
        )
        for _ in range(consumers)
    ]
    try:
        started = time.monotonic()
        left = dict.fromkeys(readers, records)
        for reader in readers:
            # One that is told to read a topic of which it knows no leaders asks where to begin 500 ms later.
            reader.list_topics(topic, timeout=_PATIENCE_S)
            reader.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
        while left:
            for reader in list(left):
                # It waits for as many as it is asked for: for more than there are until the time is over.
                asked = min(_AT_ONCE, left[reader])
                messages = reader.consume(asked, timeout=1.0 if consumers == 1 else 0.01)
                failures = [str(message.error()) for message in messages if message.error() is not None]
                if failures:
                    raise RuntimeError(failures[0])
                left[reader] -= len(messages)
                if left[reader] <= 0:
                    del left[reader]
            if time.monotonic() > started + LOAD_TIMEOUT:
                raise RuntimeError(f"{sum(left.values())} records did not come within {LOAD_TIMEOUT} s")
        return records * consumers / (time.monotonic() - started)
    finally:
        for reader in readers:
            reader.close()
