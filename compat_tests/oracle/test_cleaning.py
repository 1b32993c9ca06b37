"""The log cleaner: what is left of the same batches once both brokers have cleaned them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.oracle.asking import TOPIC, fetch, list_offsets, produce
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import PATIENCE, POLL, Side
from compat_tests.oracle.transactional import begin, complete, end, init, settle_transactions
from kwire.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import iter_batches
from kwire.protocol.records.record import Record, iter_records

pytestmark = pytest.mark.xdist_group("oracle")

SEGMENT_MS = 1000
AHEAD_MS = 60_000
"""The records' times lie so far ahead that the transactions' markers, which bear the time of day, roll no segment."""
MAX_TIMESTAMP = -3
READ_COMMITTED = 1

Pair = tuple[str, str | None]


class Compacted:
    """A topic whose every batch lies in a segment of its own, and which is cleaned when it is told."""

    def __init__(self, side: Side, label: str = "topic", **configs: str) -> None:
        self.side = side
        self.topic = side.topic(
            label,
            cleanup_policy="compact",
            segment_ms=str(SEGMENT_MS),
            min_cleanable_dirty_ratio="1.0",
            **{"delete_retention_ms": "0", **configs},
        )
        self._time = side.now + AHEAD_MS

    def put(self, *pairs: Pair, transactional_id: str | None = None, **options: Any) -> int:
        """Produces one batch; its base offset."""
        self._time += 2 * SEGMENT_MS
        records = [
            Record(index, self._time + index, key.encode(), None if value is None else value.encode(), [("h", b"v")])
            for index, (key, value) in enumerate(pairs)
        ]
        blob = build_batch(records, transactional=transactional_id is not None, **options)
        version = 11 if transactional_id else 13
        request = produce(self.side, self.topic, blob, version, transactional_id=transactional_id)
        (answer,) = self.side.call(request, version).responses[0].partition_responses
        assert not answer.error_code, answer
        offset: int = answer.base_offset
        return offset

    def offsets(self) -> list[int]:
        """Of all records, markers left out. One fetch gets no more than a segment."""
        found, offset = [], 0
        while blob := self.side.call(fetch(self.side, self.topic, offset)).responses[0].partitions[0].records:
            for header, batch in iter_batches(blob):
                if not header.control:
                    found += [record.offset for record in iter_records(batch)]
                offset = header.next_offset
        return found

    def clean(self, *left: int, note: str) -> None:
        """Lets the cleaner come until these offsets are left, and then no more; records all that is left."""
        self._set_ratio("0.0")
        deadline = time.monotonic() + PATIENCE
        while (offsets := self.offsets()) != list(left):
            assert time.monotonic() < deadline, offsets
            time.sleep(POLL)
        self._set_ratio("1.0")
        self.side.ask(fetch(self.side, self.topic), note=note)
        self.side.ask(fetch(self.side, self.topic, isolation_level=READ_COMMITTED), note=f"{note}, committed")
        for offset in range(left[-1] + 1):
            self.side.ask(fetch(self.side, self.topic, offset, partition_max_bytes=1), note=f"{note}, from {offset}")
        times = [self.side.now + AHEAD_MS + step * SEGMENT_MS for step in range(0, 30, 3)]
        for timestamp in (-1, -2, MAX_TIMESTAMP, *times):
            self.side.ask(list_offsets(self.topic, timestamp), note=f"{note}, {timestamp - self.side.now}")

    def _set_ratio(self, ratio: str) -> None:
        change = AlterableConfig(name="min.cleanable.dirty.ratio", config_operation=0, value=ratio)
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=self.topic, configs=[change])
        answered = self.side.call(IncrementalAlterConfigsRequest(resources=[resource]))
        assert not answered.responses[0].error_code, answered


def test_the_latest_record_of_each_key_stays(both: Both) -> None:
    def scenario(side: Side) -> None:
        log = Compacted(side)
        log.put(("a", "0"), ("b", "1"), ("c", "2"))
        log.put(("a", "3"), ("d", "4"))
        log.put(("b", "5"), ("a", "6"), ("b", "7"))
        log.put(("a", "in the active segment"))
        log.clean(2, 4, 6, 7, 8, note="cleaned")
        log.put(("c", "9"))
        log.put(("e", "10"))
        log.clean(4, 7, 8, 9, 10, note="cleaned again")

    both.agree(scenario)


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_compressed_batches(both: Both, codec: Compression) -> None:
    def scenario(side: Side) -> None:
        log = Compacted(side)
        log.put(("a", "0" * 500), ("b", "1"), ("c", "2"), compression=codec)
        log.put(("a", "3"), ("b", "4"), compression=codec)
        log.put(("active", "5"))
        log.clean(2, 3, 4, 5, note="cleaned")

    both.agree(scenario)


def test_tombstones_stay_for_a_while(both: Both) -> None:
    def scenario(side: Side) -> None:
        log = Compacted(side)
        log.put(("a", "0"), ("b", "1"), ("c", "2"))
        log.put(("a", None), ("b", "4"), ("never", None))
        log.put(("active", "6"))
        log.clean(2, 3, 4, 5, 6, note="cleaned")
        log.put(("active", "7"))
        log.clean(2, 4, 6, 7, note="cleaned when they are due")

    both.agree(scenario)


def test_tombstones_with_time_left(both: Both) -> None:
    def scenario(side: Side) -> None:
        log = Compacted(side, delete_retention_ms="3600000")
        log.put(("a", "0"), ("b", "1"))
        log.put(("a", None))
        log.put(("active", "3"))
        log.clean(1, 2, 3, note="cleaned")
        log.put(("b", "4"))
        log.put(("active", "5"))
        log.clean(2, 3, 4, 5, note="cleaned again")

    both.agree(scenario)


def test_the_last_batch_of_a_producer_stays(both: Both) -> None:
    def scenario(side: Side) -> None:
        log = Compacted(side)
        for sequence in (0, 2, 4):
            log.put(("a", "x"), ("b", "y"), producer_id=77, producer_epoch=0, base_sequence=sequence)
        log.put(("a", "by another"), ("b", "by another"))
        log.put(("active", "8"))
        log.clean(6, 7, 8, note="cleaned")
        log.put(("c", "9"), producer_id=77, producer_epoch=0, base_sequence=6)
        log.put(("b", "10"))
        log.put(("active", "11"))
        log.clean(6, 8, 9, 10, 11, note="cleaned again")

    both.agree(scenario)


def test_transactions(both: Both) -> None:
    def scenario(side: Side) -> None:
        settle_transactions(side)
        log = Compacted(side)
        name = side.name()
        producer = init(side, name)

        def transaction(first_sequence: int, *pairs: Pair, commit: bool) -> None:
            begin(side, name, producer, (log.topic, 0))
            options = {"producer_id": producer.id, "producer_epoch": producer.epoch}
            for index, pair in enumerate(pairs):
                log.put(pair, transactional_id=name, base_sequence=first_sequence + index, **options)
            side.call(end(name, producer, commit=commit), 3)
            complete(side, name)

        log.put(("a", "0"), ("b", "1"))
        transaction(0, ("a", "aborted"), ("b", "aborted"), commit=False)  # offsets 2, 3, marker 4
        transaction(2, ("a", "committed"), ("c", "committed"), commit=True)  # 5, 6, 7
        transaction(4, ("a", "aborted"), commit=False)  # 8, 9
        log.put(("a", "10"))
        log.put(("active", "11"))
        log.clean(1, 6, 10, 11, note="cleaned")
        log.put(("c", "12"))
        log.put(("active", "13"))
        log.clean(1, 10, 11, 12, 13, note="cleaned again")
        log.put(("b", "14"))
        log.put(("active", "15"))
        log.clean(10, 12, 13, 14, 15, note="and again")
        log.put(("c", "16"))
        log.put(("active", "17"))
        log.clean(10, 14, 15, 16, 17, note="when the markers may go")

    both.agree(scenario)
