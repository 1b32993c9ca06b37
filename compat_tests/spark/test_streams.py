"""Topics read and written as streams."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from compat_tests.cases import BASE_TIME, numbered
from compat_tests.confluent.driver import ConfluentAdmin, ConfluentDriver
from compat_tests.driver import Record
from compat_tests.spark.kafka_tables import KafkaTables
from kwire.testing.factories import TopicFactory

pytestmark = pytest.mark.xdist_group("spark")

PATIENCE = 60
"""Seconds for a stream to do what it must do."""


def values(kafka: KafkaTables, topic: str) -> list[int]:
    """The first word of each value: the number of a record of `numbered`."""
    return [int(row.value.split()[0]) for row in kafka.collect(topic)]


def test_a_stream_goes_on_where_its_checkpoint_is(
    kafka: KafkaTables, kwire_topic_factory: TopicFactory, kwire_broker: Any, tmp_path: Path
) -> None:
    driver = ConfluentDriver(kwire_broker.bootstrap)
    source, target = kwire_topic_factory(), kwire_topic_factory()
    driver.produce(source, numbered(300))
    kafka.run(kafka.stream(source, maxOffsetsPerTrigger=100), target, tmp_path)
    assert values(kafka, target) == list(range(300))
    driver.produce(source, numbered(450)[300:])
    kafka.run(kafka.stream(source), target, tmp_path)
    assert values(kafka, target) == list(range(450))


def test_an_empty_topic_ends_a_stream_at_once(
    kafka: KafkaTables, kwire_topic_factory: TopicFactory, tmp_path: Path
) -> None:
    source, target = kwire_topic_factory(partitions=3), kwire_topic_factory()
    kafka.run(kafka.stream(source), target, tmp_path)
    assert kafka.collect(target) == []


def test_a_thousand_partitions(
    kafka: KafkaTables, kwire_topic_factory: TopicFactory, kwire_broker: Any, tmp_path: Path
) -> None:
    source, target = kwire_topic_factory(partitions=1000), kwire_topic_factory()
    # A stream asks for the offsets of all, and has a task for each that has records; a table would have one for each.
    columns = ["CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value", "CAST(id AS INT) AS partition"]
    kafka.write(source, kafka.spark.range(24, 1000, 25).coalesce(1).selectExpr(*columns))
    # A look at a partition's bounds waits for the fetch under way, which nothing comes to end.
    stream = kafka.stream(source, kafka_fetch_max_wait_ms=10)
    kafka.run(stream.selectExpr("CAST(partition AS STRING) AS key", "value"), target, tmp_path)
    expected = [(str(i), str(i)) for i in range(24, 1000, 25)]
    got = [(row.key.decode(), row.value.decode()) for row in kafka.collect(target)]
    assert sorted(got) == sorted(expected)
    ConfluentAdmin(kwire_broker.bootstrap).delete_topic(source)


def test_a_stream_from_a_time_on(
    kafka: KafkaTables, kwire_topic_factory: TopicFactory, kwire_broker: Any, tmp_path: Path
) -> None:
    source, target = kwire_topic_factory(), kwire_topic_factory()
    ConfluentDriver(kwire_broker.bootstrap).produce(source, numbered(100))
    kafka.run(kafka.stream(source, startingTimestamp=BASE_TIME + 90), target, tmp_path)
    assert values(kafka, target) == list(range(90, 100))


def test_a_stream_sees_what_arrives_while_it_runs(kafka: KafkaTables, kwire_topic: str, kwire_broker: Any) -> None:
    driver = ConfluentDriver(kwire_broker.bootstrap)
    stream = kafka.stream(kwire_topic).selectExpr("CAST(value AS STRING) AS value")
    query = stream.writeStream.format("memory").queryName("seen").trigger(processingTime="100 milliseconds").start()
    try:
        for count in (1, 2, 3):
            driver.produce(kwire_topic, numbered(1))
            _until(lambda expected=count: kafka.spark.table("seen").count() == expected)
    finally:
        query.stop()


def test_a_stream_of_topics_by_pattern_finds_new_ones(
    kafka: KafkaTables, kwire_topic_factory: TopicFactory, kwire_broker: Any, new_name: Callable[[], str]
) -> None:
    driver, admin = ConfluentDriver(kwire_broker.bootstrap), ConfluentAdmin(kwire_broker.bootstrap)
    prefix = new_name()
    options = {**kafka.options, "subscribePattern": f"{prefix}-.*", "startingOffsets": "earliest"}
    # A consumer hears of new topics with its metadata, which it keeps for five minutes unless told otherwise.
    options["kafka.metadata.max.age.ms"] = "200"
    stream = kafka.spark.readStream.format("kafka").options(**options).load().select("topic")
    query = stream.writeStream.format("memory").queryName("topics").trigger(processingTime="100 milliseconds").start()
    try:
        for name in ("a", "b"):
            admin.create_topic(f"{prefix}-{name}")
            driver.produce(f"{prefix}-{name}", numbered(1))
            _until(
                lambda wanted=f"{prefix}-{name}": kafka.spark.table("topics").where(f"topic = '{wanted}'").count() == 1
            )
    finally:
        query.stop()


def test_new_partitions_are_found_while_a_stream_runs(
    kafka: KafkaTables, kwire_topic: str, kwire_broker: Any, settled: Callable[..., None]
) -> None:
    driver, admin = ConfluentDriver(kwire_broker.bootstrap), ConfluentAdmin(kwire_broker.bootstrap)
    stream = kafka.stream(kwire_topic, kafka_metadata_max_age_ms=200).select("partition")
    query = stream.writeStream.format("memory").queryName("places").trigger(processingTime="100 milliseconds").start()
    try:
        driver.produce(kwire_topic, numbered(1))
        _until(lambda: kafka.spark.table("places").count() == 1)
        admin.create_partitions(kwire_topic, 3)
        settled(lambda: driver.produce(kwire_topic, [Record(value=b"0", partition=2)]))
        _until(lambda: kafka.spark.table("places").where("partition = 2").count() == 1)
    finally:
        query.stop()


def test_records_gone_before_they_were_read_end_a_stream_that_minds(
    kafka: KafkaTables, kwire_topic_factory: TopicFactory, kwire_broker: Any, tmp_path: Path
) -> None:
    driver, admin = ConfluentDriver(kwire_broker.bootstrap), ConfluentAdmin(kwire_broker.bootstrap)
    source, target = kwire_topic_factory(), kwire_topic_factory()
    driver.produce(source, numbered(10))
    kafka.run(kafka.stream(source), target, tmp_path)
    driver.produce(source, numbered(20)[10:])
    admin.delete_records(source, 15)
    with pytest.raises(StreamingQueryException, match=r"(?i)data loss|lost"):
        kafka.run(kafka.stream(source), target, tmp_path)
    kafka.run(kafka.stream(source, failOnDataLoss="false"), target, tmp_path)
    assert values(kafka, target) == [*range(10), *range(15, 20)]


def _until(check: Callable[[], bool]) -> None:
    """Returns when the check holds: a stream tells nobody when it has handled a record."""
    deadline = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < deadline, "the stream did not get there"
        time.sleep(0.05)
