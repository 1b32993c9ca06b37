"""Options of source and sink that a broker notices: which partitions and how much of them, what is gone or aborted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from compat_tests.cases import numbered
from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver
from compat_tests.driver import Record
from compat_tests.spark.kafka_tables import KafkaTables
from compat_tests.spark.test_streams import PATIENCE
from kwire.testing.factories import BrokerFactory, TopicFactory

pytestmark = pytest.mark.xdist_group("spark")

LOSS = r"(?i)data loss|lost|may have been|are gone"


def test_some_partitions_in_small_pieces(
    kafka: KafkaTables, kwire_topic_factory: TopicFactory, kwire_broker: Any
) -> None:
    """`assign` and `minPartitions`."""
    topic = kwire_topic_factory(partitions=3)
    rows = [Record(value=f"{number}".encode(), partition=number % 3) for number in range(3000)]
    ConfluentDriver(kwire_broker.bootstrap).produce(topic, rows)
    options = {"assign": json.dumps({topic: [0, 2]}), "minPartitions": "8"}
    table = kafka.spark.read.format("kafka").options(**kafka.options, **options).load()
    assert table.rdd.getNumPartitions() == 8
    found = sorted(int(row.value) for row in table.select("value").collect())
    assert found == [number for number in range(3000) if number % 3 != 1]


def test_a_stream_in_pieces_of_so_many_records(
    kafka: KafkaTables, kwire_topic_factory: TopicFactory, kwire_broker: Any, tmp_path: Path
) -> None:
    """`maxRecordsPerPartition`; of a table too, if its ends are numbers: it counts before it looks up "latest"."""
    topic = kwire_topic_factory(partitions=2)
    rows = [Record(value=f"{number}".encode(), partition=number % 2) for number in range(2000)]
    ConfluentDriver(kwire_broker.bootstrap).produce(topic, rows)
    pieces: list[int] = []
    seen: list[int] = []

    def look(batch: DataFrame, number: int) -> None:
        pieces.append(batch.rdd.getNumPartitions())
        seen.extend(int(row.value) for row in batch.select("value").collect())

    with Streaming(kafka.stream(topic, maxRecordsPerPartition=300), look, tmp_path) as query:
        query.wait_for(lambda: len(seen) == 2000)
    assert pieces == [8]
    assert sorted(seen) == list(range(2000))
    start, end = ({topic: {"0": offset, "1": offset}} for offset in (0, 1000))
    numbers = {"startingOffsets": json.dumps(start), "endingOffsets": json.dumps(end)}
    assert kafka.read(topic, maxRecordsPerPartition=300, **numbers).rdd.getNumPartitions() == 8


def test_aborted_and_open_transactions_are_not_read(
    kafka: KafkaTables, kwire_topic_factory: TopicFactory, kwire_broker: Any, tmp_path: Path
) -> None:
    """By a table, one that is cut finely, and a stream; each sees it all without `read_committed`."""
    topic, target = kwire_topic_factory(partitions=2), kwire_topic_factory()
    producer = Producer({"bootstrap.servers": kwire_broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(PATIENCE)
    kept, number = [], 0
    for size, end in ((120, "commit"), (70, "abort"), (30, "commit"), (200, "abort"), (1, "commit"), (40, "open")):
        producer.begin_transaction()
        for _ in range(size):
            producer.produce(topic, str(number), partition=number % 2)
            if end == "commit":
                kept.append(number)
            number += 1
        producer.flush(PATIENCE)
        if end == "commit":
            producer.commit_transaction(PATIENCE)
        elif end == "abort":
            producer.abort_transaction(PATIENCE)

    def numbers(**options: object) -> list[int]:
        return sorted(int(row.value) for row in kafka.read(topic, **options).select("value").collect())

    assert numbers() == list(range(number))
    committed = {"kafka_isolation_level": "read_committed"}
    assert numbers(**committed) == kept
    assert numbers(**committed, minPartitions=20) == kept
    # Of what a batch is to have, all may be markers and aborted records.
    stream = kafka.stream(topic, **committed, maxOffsetsPerTrigger=60).select("value")
    kafka.run(stream, target, tmp_path)
    assert sorted(int(row.value) for row in kafka.collect(target)) == kept
    producer.abort_transaction(PATIENCE)


def test_a_batch_waits_until_it_is_worth_while(
    kafka: KafkaTables, kwire_topic: str, kwire_broker: Any, tmp_path: Path
) -> None:
    """`minOffsetsPerTrigger`, and `maxTriggerDelay` after which less will do."""
    driver = ConfluentDriver(kwire_broker.bootstrap)
    stream = kafka.stream(kwire_topic, minOffsetsPerTrigger=100, maxTriggerDelay="8s")
    sizes: list[int] = []
    with Streaming(stream, lambda batch, number: sizes.append(batch.count()), tmp_path) as query:
        for _ in range(10):
            driver.produce(kwire_topic, numbered(25))
        query.wait_for(lambda: sum(sizes) == 250)
    # The first batch may be of any size, and so may the last.
    assert all(size >= 100 for size in sizes[1:-1])
    assert len(sizes) <= 4


@pytest.mark.parametrize("minds", [False, True])
def test_retention_overtakes_a_slow_query(
    kafka: KafkaTables, kwire_broker_factory: BrokerFactory, tmp_path: Path, minds: bool
) -> None:
    broker = kwire_broker_factory({"log.retention.check.interval.ms": 100})
    driver = ConfluentDriver(broker.bootstrap)
    tables = KafkaTables(kafka.spark, broker.bootstrap)
    small = {"internal.segment.bytes": 3_000, "retention.ms": -1, "retention.bytes": 5_000, "file.delete.delay.ms": 0}
    topic = TopicFactory(broker, "slow")(configs=small)
    driver.produce(topic, numbered(100))
    seen: list[int] = []

    def slow(batch: DataFrame, number: int) -> None:
        seen.extend(row.offset for row in batch.select("offset").collect())
        if number == 1:
            for _ in range(10):
                driver.produce(topic, numbered(100))
            deadline = time.monotonic() + PATIENCE
            while driver.bounds(topic).begin < 200:
                assert time.monotonic() < deadline, "nothing was deleted"
                time.sleep(0.05)

    stream = tables.stream(topic, maxOffsetsPerTrigger=40, failOnDataLoss=str(minds).lower())
    with Streaming(stream, slow, tmp_path) as query:
        if minds:
            with pytest.raises(StreamingQueryException, match=LOSS):
                query.query.awaitTermination(PATIENCE)
            assert seen == list(range(80))
        else:
            query.wait_for(lambda: 1099 in seen)
            first = driver.bounds(topic).begin
            assert seen[:80] == list(range(80))
            # What an executor had fetched before comes still; then, those that are left.
            assert [offset for offset in seen if offset >= first] == list(range(first, 1100))
            assert seen == sorted(set(seen))
            assert not {*range(100, 200)} & {*seen}


@pytest.mark.parametrize("minds", [False, True])
def test_a_topic_is_deleted_while_a_query_runs(
    kafka: KafkaTables, kwire_broker: Any, new_name: Callable[[], str], tmp_path: Path, minds: bool
) -> None:
    driver, admin = ConfluentDriver(kwire_broker.bootstrap), ConfluentAdmin(kwire_broker.bootstrap)
    prefix = new_name()
    gone, stays = f"{prefix}-gone", f"{prefix}-stays"
    for topic in (gone, stays):
        admin.create_topic(topic)
        driver.produce(topic, numbered(10))
    options = {"subscribePattern": f"{prefix}-.*", "startingOffsets": "earliest", "kafka.metadata.max.age.ms": "200"}
    options |= {"failOnDataLoss": str(minds).lower()}
    stream = kafka.spark.readStream.format("kafka").options(**kafka.options, **options).load()
    seen: dict[str, int] = {gone: 0, stays: 0}

    def count(batch: DataFrame, number: int) -> None:
        for row in batch.groupBy("topic").count().collect():
            seen[row.topic] += row["count"]

    with Streaming(stream, count, tmp_path) as query:
        query.wait_for(lambda: seen == {gone: 10, stays: 10})
        admin.delete_topic(gone)
        driver.produce(stays, numbered(10))
        if minds:
            with pytest.raises(StreamingQueryException, match=LOSS):
                query.query.awaitTermination(PATIENCE)
        else:
            query.wait_for(lambda: seen == {gone: 10, stays: 20})


class Streaming:
    """A query that hands its batches to a function, while this is entered."""

    def __init__(self, stream: DataFrame, each: Callable[[DataFrame, int], None], checkpoint: Path) -> None:
        writer = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
        self.query = writer.trigger(processingTime="50 milliseconds").start()

    def wait_for(self, happened: Callable[[], bool]) -> None:
        """Returns when it has happened; fails where the query ends before that."""
        deadline = time.monotonic() + PATIENCE
        while not happened():
            assert self.query.isActive, self.query.exception()
            assert time.monotonic() < deadline, "the query did not get there"
            time.sleep(0.02)

    def __enter__(self) -> Streaming:
        return self

    def __exit__(self, *details: object) -> None:
        self.query.stop()
