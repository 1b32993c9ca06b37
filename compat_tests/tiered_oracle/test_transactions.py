"""Transactions whose records are in remote storage, and whose markers lie in later segments, remote ones and here."""

from __future__ import annotations

import time

import pytest

from compat_tests.cases import BASE_TIME
from compat_tests.oracle.asking import batch, fetch, fill, produce
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import PATIENCE, POLL, Side
from compat_tests.oracle.transactional import Producer, begin, complete, end, init, settle_transactions
from compat_tests.tiered_oracle.stages import (
    EARLIEST_LOCAL,
    LATEST_TIERED,
    PENDING_UPLOAD,
    READ_COMMITTED,
    RECORDS,
    TIERED,
    ask_offsets,
    offsets,
    settle,
    some,
)

pytestmark = pytest.mark.xdist_group("tiered oracle")

BEFORE_TRANSACTIONS_OF_VERSION_2 = 11


class Writer:
    """A transactional producer on partition 0 of one topic."""

    def __init__(self, side: Side, topic: str, label: str) -> None:
        self._side, self._topic = side, topic
        self._name = side.name(label)
        self._producer: Producer = init(side, self._name)
        self._sequence = 0

    def begin(self) -> None:
        begin(self._side, self._name, self._producer, (self._topic, 0))

    def write(self) -> None:
        blob = batch(
            3,
            start=BASE_TIME,
            size=100,
            producer_id=self._producer.id,
            producer_epoch=self._producer.epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        self._sequence += 3
        version = BEFORE_TRANSACTIONS_OF_VERSION_2
        request = produce(self._side, self._topic, blob, version, transactional_id=self._name)
        (answer,) = self._side.call(request, version).responses[0].partition_responses
        assert not answer.error_code, answer

    def end(self, *, commit: bool) -> None:
        assert not self._side.call(end(self._name, self._producer, commit=commit), 4).error_code
        complete(self._side, self._name)


def test_aborted_transactions(tiered: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        topic = side.topic(**TIERED, local_retention_bytes="1")
        long, short, committed = (Writer(side, topic, label) for label in ("long", "short", "committed"))
        long.begin()
        long.write()
        for _ in range(2):
            short.begin()
            short.write()
            short.end(commit=False)
            committed.begin()
            committed.write()
            committed.end(commit=True)
            fill(side, topic, some(1))
        settle(side, topic)
        ask_offsets(side, topic, (0, BASE_TIME), "while one is open")
        long.write()
        long.end(commit=False)
        long.begin()
        long.write()
        fill(side, topic, some(1), some(2), some(3))
        long.end(commit=False)
        fill(side, topic, *(some(number) for number in range(4)))
        (last,) = fill(side, topic, some(9))
        wait_until_remote(side, topic, last)
        for offset in range(last):
            for most in (1, 500, 1200, 1 << 20):
                request = fetch(side, topic, offset, isolation_level=READ_COMMITTED, partition_max_bytes=most)
                answer = side.call(request)
                (partition,) = answer.responses[0].partitions
                # Those of several segments come in the order of a hash table from Apache Kafka.
                (partition.aborted_transactions or []).sort(key=lambda aborted: aborted.first_offset)
                side.record_response(f"Fetch ({offset}, {most} bytes)", answer)

    tiered.agree(scenario)


def wait_until_remote(side: Side, topic: str, last: int) -> None:
    """Waits until all is remote but the active segment, which begins with the last batch or a control batch before."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = offsets(side, topic)
        if found[EARLIEST_LOCAL] == found[PENDING_UPLOAD] == found[LATEST_TIERED] + 1 >= last - RECORDS:
            return
        assert time.monotonic() < deadline, (side, found)
        time.sleep(POLL)
