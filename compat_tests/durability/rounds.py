"""A round: producers of three kinds write while the broker is killed at random moments, and then everything is read.

    idempotent      each record once, in order, at the offset that it was acknowledged with
    plain           (one request in flight) each acknowledged record at its offset, in order; others again
    transactional   what was committed once and in order, nothing of what was aborted

The logs that they write to roll all the time; one of them is compacted, of one the oldest segments are deleted, and one
topic is deleted and made anew. Of the kills some come soon after a start, while the logs are still being recovered.
"""

from __future__ import annotations

import random
import time
from contextlib import suppress
from itertools import pairwise

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.driver import TIMEOUT
from compat_tests.durability.streams import ConfluentStream
from compat_tests.durability.transactions import Fate, TransactionalWriter
from compat_tests.exactly_once.crash import Lost
from compat_tests.reading import everything
from kwire.testing.process import BrokerError, BrokerProcess

SETTINGS = {
    "log.cleaner.backoff.ms": 10,
    "log.retention.check.interval.ms": 50,
    "log.flush.offset.checkpoint.interval.ms": 100,
    "log.flush.start.offset.checkpoint.interval.ms": 100,
    "replica.high.watermark.checkpoint.interval.ms": 100,
}
"""What otherwise happens once in minutes shall meet the kills."""
SMALL = {"internal.segment.bytes": "20000", "file.delete.delay.ms": "0"}
COMPACTED = {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
SHORT = {**SMALL, "retention.bytes": "60000"}
LEFT = 20_000
"""Bytes of records that retention leaves at least: a part of retention.bytes, since batches have headers."""
SYNCED = {**SMALL, "flush.messages": "1"}
KEYS = 30
STEPS = 60
PER_STEP = 15
"""Records of each producer."""
CRASHES = 3
SHORTLY = 0.02
"""Seconds at the most between the last sends and the kill."""
START_TIMEOUT = 60.0
EARLY = (0.02, 0.4)
"""Seconds after which a start may be cut off."""
STEADY = {"metadata.recovery.strategy": "none", "linger.ms": 1}
"""Where all brokers are gone, librdkafka 2.16 otherwise forgets them."""
PLAIN = {**STEADY, "max.in.flight.requests.per.connection": 1}


class WriteRound:
    """The same seed kills after the same numbers of records."""

    def __init__(self, broker: BrokerProcess, seed: int) -> None:
        self._broker = broker
        self._random = random.Random(seed)
        self._seed = seed

    def run(self) -> None:
        """Raises Lost."""
        rolled, short, compacted, doomed, synced, transactional = (
            self._topic(name, config)
            for name, config in (
                ("rolled", SMALL),
                ("short", SHORT),
                ("compacted", COMPACTED),
                ("doomed", SMALL),
                ("synced", SYNCED),
                ("transactional", SMALL),
            )
        )
        streams = {
            topic: ConfluentStream(self._broker.bootstrap, topic, idempotent=idempotent, settings=settings)
            for topic, idempotent, settings in (
                (rolled, True, STEADY),
                (compacted, True, STEADY),
                (short, False, PLAIN),
                (synced, False, PLAIN),
            )
        }
        writer = TransactionalWriter(self._broker.bootstrap, transactional, self._seed)
        crashes = set(self._random.sample(range(5, STEPS), CRASHES))
        deletion = self._random.randrange(STEPS)
        for step in range(STEPS):
            for stream in streams.values():
                for place in range(step * PER_STEP, (step + 1) * PER_STEP):
                    stream.send(place, _value(place), b"%d" % (place % KEYS))
                stream.poll()
            if step == deletion:
                self._make_anew(doomed)
            if step in crashes:
                self._crash()
        for topic, stream in streams.items():
            stream.finish()
            if stream.failures or len(stream.acknowledged) != STEPS * PER_STEP:
                raise Lost(f"{topic}: {len(stream.acknowledged)} acknowledged, failed: {stream.failures[:3]}")
        writer.finish()
        self._check_once(rolled, streams[rolled])
        self._check_acknowledged(short, streams[short])
        self._check_acknowledged(synced, streams[synced])
        self._check_latest(compacted, streams[compacted])
        self._check_anew(doomed)
        self._check_transactions(transactional, writer)
        self._delete([rolled, short, compacted, doomed, synced, transactional])

    # What is done to the broker

    def _topic(self, name: str, config: dict[str, str]) -> str:
        topic = f"{name}-{self._seed}"
        self._create(topic, config)
        return topic

    def _create(self, topic: str, config: dict[str, str]) -> None:
        admin = AdminClient({"bootstrap.servers": self._broker.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(TIMEOUT)

    def _delete(self, topics: list[str]) -> None:
        admin = AdminClient({"bootstrap.servers": self._broker.bootstrap})
        for done in admin.delete_topics(topics).values():
            done.result(TIMEOUT)

    def _crash(self) -> None:
        time.sleep(self._random.uniform(0, SHORTLY))
        self._broker.kill()
        for _ in range(self._random.randrange(3)):
            with suppress(BrokerError):
                self._broker.start(self._random.uniform(*EARLY))
            self._broker.kill()
        self._broker.start(START_TIMEOUT)

    def _make_anew(self, topic: str) -> None:
        """Fills the topic, deletes it and makes another of that name, with a kill amid it."""
        self._fill(topic, b"old")
        self._delete([topic])
        if self._random.random() < 0.5:
            self._crash()
        self._create(topic, SMALL)
        self._fill(topic, b"new")
        if self._random.random() < 0.5:
            self._crash()

    def _fill(self, topic: str, value: bytes) -> None:
        stream = ConfluentStream(self._broker.bootstrap, topic, idempotent=True, settings=STEADY)
        for place in range(100):
            stream.send(place, value * 100)
        stream.finish()
        if stream.failures:
            raise Lost(f"{topic}: failed: {stream.failures[:3]}")

    # What must hold

    def _check_once(self, topic: str, stream: ConfluentStream) -> None:
        read = self._read(topic)
        self._demand([value for _, value in read] == [_value(place) for place in range(STEPS * PER_STEP)], topic)
        self._demand(stream.acknowledged == {place: place for place in range(STEPS * PER_STEP)}, topic)

    def _check_acknowledged(self, topic: str, stream: ConfluentStream) -> None:
        """Each at its offset and in order; where the oldest segments were deleted, from the first that is left on."""
        start = self._start_of(topic)
        read = self._read(topic)
        while (now := self._start_of(topic)) != start:  # retention went on meanwhile
            start, read = now, self._read(topic)
        offsets = [offset for offset, _ in read]
        self._demand(all(later == earlier + 1 for earlier, later in pairwise(offsets)), topic)
        there = dict(read)
        places = [offset for _, offset in sorted(stream.acknowledged.items())]
        self._demand(places == sorted(places), topic)
        self._demand(bool(offsets) and start <= offsets[0], topic)
        self._demand(start == 0 or sum(map(len, there.values())) > LEFT, topic)
        kept = {place: offset for place, offset in stream.acknowledged.items() if offset >= offsets[0]}
        wrong = [place for place, offset in kept.items() if there.get(offset) != _value(place)]
        self._demand(not wrong, f"{topic}, sent as {wrong[:5]}")
        sent = set(map(_value, range(STEPS * PER_STEP)))
        self._demand(sent.issuperset(there.values()), topic)

    def _check_latest(self, topic: str, stream: ConfluentStream) -> None:
        read = self._read(topic)
        by_offset = {offset: place for place, offset in stream.acknowledged.items()}
        self._demand(all(_value(by_offset[offset]) == value for offset, value in read), topic)
        latest = {place % KEYS: offset for place, offset in sorted(stream.acknowledged.items())}
        self._demand(set(latest.values()) <= {offset for offset, _ in read}, topic)

    def _check_anew(self, topic: str) -> None:
        self._demand([value for _, value in self._read(topic)] == [b"new" * 100] * 100, topic)

    def _check_transactions(self, topic: str, writer: TransactionalWriter) -> None:
        seen = [value for _, value in self._read(topic)]
        there = set(seen)
        expected: list[bytes] = []
        for fate, values in writer.transactions:
            if fate is Fate.COMMITTED or (fate is Fate.UNKNOWN and values[0] in there):
                expected += values
        self._demand(seen == expected, topic)

    def _read(self, topic: str) -> list[tuple[int, bytes]]:
        return [(message.offset(), message.value()) for message in everything(self._broker.bootstrap, topic)]

    def _start_of(self, topic: str) -> int:
        consumer = Consumer({"bootstrap.servers": self._broker.bootstrap, "group.id": "none", "log_level": 0})
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT)[0]
        finally:
            consumer.close()

    def _demand(self, condition: bool, what: str) -> None:
        if not condition:
            raise Lost(f"{what}: lost, too many or out of order\n{self._broker.log_tail()}")


def _value(place: int) -> bytes:
    return b"%d" % place * 20
