"""A round: records are copied while broker and workers are killed at random moments, and each must arrive once."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition

from compat_tests.driver import TIMEOUT
from compat_tests.exactly_once.worker import RECONNECT
from compat_tests.exactly_once.workers import WorkerProgram, Workers
from compat_tests.reading import everything
from kwire.testing.process import BrokerProcess
from kwire.testing.topics import create_topic

BROKER_SETTINGS = {
    "group.min.session.timeout.ms": 100,
    "group.consumer.min.session.timeout.ms": 100,
    "group.consumer.session.timeout.ms": 2000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 300,
}
"""A killed worker shall not stay in the group for long."""
RECORDS, KEYS = 800, 40
PARTITIONS_FROM, PARTITIONS_TO = 4, 3
WORKERS = 2
CRASHES = 3
SHORTLY = 0.02
"""Seconds at the most between the moment that a crash waits for and the crash: any step of a transaction may be hit."""
ROUND_TIMEOUT = 200.0
"""Seconds; a round takes a few, on a busy machine some dozen."""


class Lost(AssertionError):
    """The output is not the input."""


class Round:
    """The same seed kills the same victims after the same numbers of records.

    `folder` keeps what the workers complain about.
    """

    def __init__(self, broker: BrokerProcess, seed: int, worker: WorkerProgram, folder: Path) -> None:
        self._broker = broker
        self._worker = worker
        self._random = random.Random(seed)
        name = f"{worker.client}-{seed}"
        self._group, self._source, self._target = f"copy-{name}", f"from-{name}", f"to-{name}"
        self._log = folder / f"workers-{name}.log"
        self._deadline = time.monotonic() + ROUND_TIMEOUT

    def run(self) -> None:
        """Raises Lost, also where the output is not complete in time."""
        create_topic(self._broker.bootstrap, self._source, PARTITIONS_FROM, {})
        create_topic(self._broker.bootstrap, self._target, PARTITIONS_TO, {})
        sent = self._write()
        self._begin_at_zero()
        command = [*self._worker.command, self._broker.bootstrap, self._group, self._source, self._target]
        with Workers(WORKERS, command, self._group, self._log) as workers, closing(self._reader()) as reader:
            arrived = 0
            for moment in [*sorted(self._random.randrange(RECORDS) for _ in range(CRASHES)), RECORDS]:
                while arrived < moment:
                    arrived += len(reader.consume(RECORDS, 0.02))
                    workers.tend()
                    if time.monotonic() > self._deadline:
                        raise Lost(f"{arrived} of {RECORDS} came\n{workers.log_tail()}\n{self._broker.log_tail()}")
                if moment < RECORDS:
                    time.sleep(self._random.uniform(0, SHORTLY))
                    self._crash(workers)
        self._compare(sent)

    def _crash(self, workers: Workers) -> None:
        victim = self._random.choice(("broker", "worker", "worker", "both"))
        if victim != "broker":
            workers.kill(self._random.randrange(WORKERS))
        if victim != "worker":
            self._broker.kill()
            self._broker.start(ROUND_TIMEOUT)

    def _write(self) -> dict[bytes, list[bytes]]:
        producer = Producer({"bootstrap.servers": self._broker.bootstrap, "enable.idempotence": True})
        sent = defaultdict(list)
        for number in range(RECORDS):
            key, value = b"%d" % self._random.randrange(KEYS), b"%d" % number
            producer.produce(self._source, value, key)
            sent[key].append(value)
        if producer.flush(TIMEOUT):
            raise Lost("the input could not be written")
        return sent

    def _begin_at_zero(self) -> None:
        """Commits where the group begins.

        Without it librdkafka 2.16 asks for the beginning, and where the broker goes down meanwhile, it goes on to ask,
        and then to fetch, although the partition is not its own any more: what it has is handed on twice.
        """
        places = [TopicPartition(self._source, number, 0) for number in range(PARTITIONS_FROM)]
        with closing(Consumer({"bootstrap.servers": self._broker.bootstrap, "group.id": self._group})) as consumer:
            consumer.commit(offsets=places, asynchronous=False)

    def _reader(self) -> Consumer:
        """Sees how far the pipeline has come."""
        reading = {"group.id": "unused", "isolation.level": "read_committed", "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": self._broker.bootstrap, "log_level": 0, **reading, **RECONNECT})
        consumer.assign([TopicPartition(self._target, number, OFFSET_BEGINNING) for number in range(PARTITIONS_TO)])
        return consumer

    def _compare(self, sent: dict[bytes, list[bytes]]) -> None:
        got = _by_key(everything(self._broker.bootstrap, self._target))
        if got == sent:
            return
        wanted, came = (Counter(value for values in some.values() for value in values) for some in (sent, got))
        raise Lost(f"missing {wanted - came}, too many {came - wanted}, or out of order\n{self._broker.log_tail()}")


def _by_key(messages: Iterable[Message]) -> dict[bytes, list[bytes]]:
    values = defaultdict(list)
    for message in messages:
        values[message.key()].append(message.value())
    return values
