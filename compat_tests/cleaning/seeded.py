"""A compacted log with everything in it that a cleaner treats in a way of its own, from a seed."""

from __future__ import annotations

import random

from compat_tests.oracle.asking import produce
from compat_tests.oracle.sides import Side
from compat_tests.oracle.transactional import Producer, begin, complete, end, init
from kwire.protocol.messages.init_producer_id import InitProducerIdRequest
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.record import Record

SEGMENT_MS = 100_000
AHEAD_MS = 3_000_000
"""The records' times lie so far ahead that the transactions' markers, which bear the time of day, roll no segment."""

_KEYS = 25
_BATCHES_PER_SEGMENT = 9
_SEGMENTS = 6
_MOST_RECORDS = 12


class SeededLog:
    """Fills a topic of one broker, batch by batch. The time goes on with each batch, far at the end of a segment."""

    def __init__(self, side: Side, topic: str, seed: int, *, compressed: bool = True) -> None:
        self._codecs = [Compression.NONE, *(Compression if compressed else ())]
        self._side = side
        self._topic = topic
        self._chance = random.Random(seed)
        self._time = side.now + AHEAD_MS
        self._sequences: dict[int, int] = {}

    def fill(self) -> None:
        """Segments of plain batches, of idempotent producers, and of transactions that are committed or aborted.

        The last one has a tombstone that stays, whatever is drawn.
        """
        side, chance = self._side, self._chance
        idempotent = [self._idempotent() for _ in range(3)]
        names = [side.name(f"{self._topic}-{number}") for number in range(3)]
        producers = {name: init(side, name) for name in names}
        for rest in reversed(range(_SEGMENTS)):
            for _ in range(_BATCHES_PER_SEGMENT):
                kind = chance.randrange(4)
                if kind == 0:
                    self._put()
                elif kind == 1:
                    self._put(chance.choice(idempotent))
                else:
                    name = chance.choice(names)
                    self._transaction(name, producers[name], commit=kind == 2)
            if not rest:
                self._put(records=[self._record(0)._replace(key=b"once", value=None)])
            self.roll()
        self._put()

    def add(self) -> None:
        """More plain batches in a few more segments."""
        for _ in range(3):
            for _ in range(3):
                self._put()
            self.roll()
        self._put()

    def roll(self) -> None:
        """The next batch begins a segment."""
        self._time += 2 * SEGMENT_MS

    def _idempotent(self) -> Producer:
        answer = self._side.call(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0, producer_id=-1, producer_epoch=-1)
        )
        assert not answer.error_code, answer
        return Producer(answer.producer_id, answer.producer_epoch)

    def _transaction(self, name: str, producer: Producer, *, commit: bool) -> None:
        begin(self._side, name, producer, (self._topic, 0))
        for _ in range(self._chance.randrange(1, 4)):
            self._put(producer, name)
        self._side.call(end(name, producer, commit=commit), 3)
        complete(self._side, name)

    def _put(
        self,
        producer: Producer | None = None,
        transactional_id: str | None = None,
        records: list[Record] | None = None,
    ) -> None:
        chance = self._chance
        records = records or [self._record(number) for number in range(chance.randint(1, _MOST_RECORDS))]
        options: dict[str, object] = {"compression": chance.choice(self._codecs)}
        if producer is not None:
            sequence = self._sequences.get(producer.id, 0)
            self._sequences[producer.id] = sequence + len(records)
            options |= {
                "producer_id": producer.id,
                "producer_epoch": producer.epoch,
                "base_sequence": sequence,
                "transactional": transactional_id is not None,
            }
        blob = build_batch(records, **options)  # type: ignore[arg-type]
        version = 11 if transactional_id else 13
        request = produce(self._side, self._topic, blob, version, transactional_id=transactional_id)
        (answer,) = self._side.call(request, version).responses[0].partition_responses
        assert not answer.error_code, answer

    def _record(self, number: int) -> Record:
        chance = self._chance
        self._time += chance.choice([0, 0, 1, 70, 9000 // _MOST_RECORDS])
        key = b"key %d" % chance.randrange(_KEYS)
        value = None if chance.random() < 0.15 else chance.randbytes(chance.choice([0, 5, 60, 300]))
        headers: list[tuple[str, bytes | None]] = [("a", b"header"), ("none", None)] if chance.random() < 0.3 else []
        return Record(number, self._time, key, value, headers)
