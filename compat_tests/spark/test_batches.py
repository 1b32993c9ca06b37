"""Topics written and read as tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as f

from compat_tests.cases import BASE_TIME, COMPRESSIONS, HUGE, MIB, WITH_NULL_HEADER, numbered
from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.spark.kafka_tables import KafkaTables
from kwire.testing.factories import TopicFactory

pytestmark = pytest.mark.xdist_group("spark")


def milliseconds(topic_row: Any) -> int:
    return round(topic_row.timestamp.timestamp() * 1000)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_records_come_back_as_they_were_written(kafka: KafkaTables, kwire_topic: str, compression: str) -> None:
    sent = [(record.key, record.value, list(record.headers) or None, 0) for record in WITH_NULL_HEADER]
    kafka.write(kwire_topic, kafka.rows(sent), kafka_compression_type=compression)
    got = kafka.collect(kwire_topic)
    assert [row.offset for row in got] == list(range(len(sent)))
    assert [(row.key, row.value, row.headers and [tuple(header) for header in row.headers], 0) for row in got] == sent
    assert {(row.topic, row.partition, row.timestampType) for row in got} == {(kwire_topic, 0, 0)}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_kind_of_acknowledgement(kafka: KafkaTables, kwire_topic: str, acks: str) -> None:
    idempotence = "true" if acks == "all" else "false"
    records = kafka.rows([(b"key", b"value", None, 0)])
    kafka.write(kwire_topic, records, kafka_acks=acks, kafka_enable_idempotence=idempotence)
    assert [(row.key, row.value) for row in kafka.collect(kwire_topic)] == [(b"key", b"value")]


def test_timestamps_of_another_client(kafka: KafkaTables, kwire_topic: str, kwire_broker: Any) -> None:
    ConfluentDriver(kwire_broker.bootstrap).produce(kwire_topic, numbered(10))
    assert [milliseconds(row) for row in kafka.collect(kwire_topic)] == [BASE_TIME + i for i in range(10)]


def test_the_time_of_the_append(kafka: KafkaTables, kwire_topic_factory: TopicFactory) -> None:
    topic = kwire_topic_factory(configs={"message.timestamp.type": "LogAppendTime"})
    kafka.write(topic, kafka.rows([(None, b"value", None, 0)]))
    (row,) = kafka.collect(topic)
    assert row.timestampType == 1
    assert milliseconds(row) > BASE_TIME


@pytest.mark.parametrize("size", [MIB, HUGE], ids=["1-MiB", "20-MiB"])
def test_large_messages_with_raised_limits(kafka: KafkaTables, kwire_topic_factory: TopicFactory, size: int) -> None:
    topic = kwire_topic_factory(configs={"max.message.bytes": size + MIB})
    value = f.repeat(f.lit("kwire..."), size // 8).cast("binary")
    records = kafka.spark.range(2).coalesce(1).select(f.col("id").cast("string").alias("key"), value.alias("value"))
    limits = {"kafka_max_request_size": size + MIB, "kafka_buffer_memory": 3 * size}
    kafka.write(topic, records, **limits)
    found = kafka.read(topic).select(f.length("value").alias("size"), f.sha1("value").alias("sha1")).collect()
    (expected,) = kafka.spark.range(1).select(f.sha1(value).alias("sha1")).collect()
    assert [(row.size, row.sha1) for row in found] == [(size, expected.sha1)] * 2


def test_an_empty_topic(kafka: KafkaTables, kwire_topic_factory: TopicFactory) -> None:
    assert kafka.collect(kwire_topic_factory(partitions=3)) == []


def test_offsets_to_read_from_and_to(kafka: KafkaTables, kwire_topic_factory: TopicFactory, kwire_broker: Any) -> None:
    topic = kwire_topic_factory(partitions=2)
    ConfluentDriver(kwire_broker.bootstrap).produce(topic, numbered(100))
    bounds = {
        "startingOffsets": json.dumps({topic: {"0": 40, "1": -2}}),
        "endingOffsets": json.dumps({topic: {"0": 43, "1": -1}}),
    }
    assert [row.offset for row in kafka.collect(topic, **bounds)] == [40, 41, 42]


def test_times_to_read_from_and_to(kafka: KafkaTables, kwire_topic: str, kwire_broker: Any) -> None:
    ConfluentDriver(kwire_broker.bootstrap).produce(kwire_topic, numbered(100))

    def offsets(**options: object) -> list[int]:
        return [row.offset for row in kafka.collect(kwire_topic, **options)]

    assert offsets(startingTimestamp=BASE_TIME + 97) == [97, 98, 99]
    assert offsets(endingTimestamp=BASE_TIME + 3) == [0, 1, 2]
    by_partition = {
        "startingOffsetsByTimestamp": json.dumps({kwire_topic: {"0": BASE_TIME + 50}}),
        "endingOffsetsByTimestamp": json.dumps({kwire_topic: {"0": BASE_TIME + 53}}),
    }
    assert offsets(**by_partition) == [50, 51, 52]
    later = BASE_TIME + 1000
    assert offsets(startingTimestamp=later, startingOffsetsByTimestampStrategy="latest") == []


def test_keys_choose_partitions(kafka: KafkaTables, kwire_topic_factory: TopicFactory) -> None:
    topic = kwire_topic_factory(partitions=6)
    records = [(f"key {i % 50}".encode(), b"value", None, None) for i in range(500)]
    kafka.write(topic, kafka.rows(records))
    places = {(bytes(row.key), row.partition) for row in kafka.collect(topic)}
    assert len(places) == 50
    assert {partition for _, partition in places} == set(range(6))


def test_a_table_cut_finer_than_its_partitions(kafka: KafkaTables, kwire_topic: str, kwire_broker: Any) -> None:
    ConfluentDriver(kwire_broker.bootstrap).produce(kwire_topic, numbered(1000))
    table = kafka.read(kwire_topic, minPartitions=4)
    assert table.rdd.getNumPartitions() == 4
    assert sorted(row.offset for row in table.select("offset").collect()) == list(range(1000))


def test_a_topic_that_writing_creates(kafka: KafkaTables, new_name: Callable[[], str]) -> None:
    topic = new_name()
    kafka.write(topic, kafka.rows([(None, b"first", None, None)]))
    assert [row.value for row in kafka.collect(topic)] == [b"first"]


def test_the_topic_of_each_row(kafka: KafkaTables, kwire_topic_factory: TopicFactory) -> None:
    one, other = kwire_topic_factory(), kwire_topic_factory()
    rows = [(one, b"1"), (other, b"2"), (one, b"3")]
    table = kafka.spark.createDataFrame(rows, "topic STRING, value BINARY").coalesce(1)
    table.write.format("kafka").options(**kafka.options).save()
    assert [row.value for row in kafka.collect(one)] == [b"1", b"3"]
    assert [row.value for row in kafka.collect(other)] == [b"2"]


def test_a_hundred_thousand_rows(kafka: KafkaTables, kwire_topic_factory: TopicFactory) -> None:
    topic = kwire_topic_factory(partitions=6)
    kafka.write(topic, kafka.spark.range(100_000).selectExpr("CAST(id AS STRING) AS value"))
    found = kafka.read(topic).selectExpr("CAST(CAST(value AS STRING) AS LONG) AS id")
    count, distinct, largest = found.agg(f.count("id"), f.count_distinct("id"), f.max("id")).first()
    assert (count, distinct, largest) == (100_000, 100_000, 99_999)
