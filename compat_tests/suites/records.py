"""Records of every kind, written and read back by the same client."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from compat_tests import cases
from compat_tests.cases import COMPRESSIONS
from compat_tests.driver import Acks, Bounds, Driver, Received, Record, Refused
from kwire.protocol.errors import ErrorCode

MINUTE = 60_000


def assert_same(received: Sequence[Received], sent: Sequence[Record], *, first_offset: int = 0) -> None:
    """The received records are the sent ones, in order, at consecutive offsets, with the times that the sender gave."""
    assert [record.offset for record in received] == list(range(first_offset, first_offset + len(sent)))
    assert [(r.key, r.value, r.headers) for r in received] == [(r.key, r.value, r.headers) for r in sent]
    timed = [(r.timestamp, s.timestamp) for r, s in zip(received, sent, strict=True) if s.timestamp is not None]
    assert [got for got, _ in timed] == [given for _, given in timed]


class RecordSuite:
    """Compression, headers, nulls, timestamps, acknowledgements, sizes, order."""

    matrix: Sequence[Record] = cases.MATRIX

    @pytest.mark.parametrize("compression", COMPRESSIONS)
    def test_every_kind_of_record_survives(self, driver: Driver, kwire_topic: str, compression: str) -> None:
        offsets = driver.produce(kwire_topic, self.matrix, compression=compression)

        assert offsets == list(range(len(self.matrix)))
        assert_same(driver.consume(kwire_topic, len(self.matrix)), self.matrix)

    @pytest.mark.parametrize("acks", ["0", "1", "all"])
    def test_acknowledgements(self, driver: Driver, kwire_topic: str, acks: Acks) -> None:
        sent = cases.numbered(20)
        driver.produce(kwire_topic, sent, acks=acks)

        received = driver.consume(kwire_topic, len(sent))
        assert [record.value for record in received] == [record.value for record in sent]

    @pytest.mark.parametrize("compression", ["none", "lz4"])
    def test_idempotent_producer(self, driver: Driver, kwire_topic: str, compression: str) -> None:
        sent = cases.numbered(500, size=200)
        driver.produce(kwire_topic, sent, idempotent=True, compression=compression)
        driver.produce(kwire_topic, sent, idempotent=True, compression=compression)

        received = driver.consume(kwire_topic, 2 * len(sent))
        assert [record.value for record in received] == 2 * [record.value for record in sent]

    def test_many_batches_keep_their_order(self, driver: Driver, kwire_topic: str) -> None:
        sent = cases.numbered(5000, size=300)
        driver.produce(kwire_topic, sent)

        received = driver.consume(kwire_topic, len(sent))
        assert [record.value for record in received] == [record.value for record in sent]
        assert [record.offset for record in received] == list(range(len(sent)))

    def test_a_timestamp_left_out_is_the_time_of_producing(self, driver: Driver, kwire_topic: str) -> None:
        before = time.time() * 1000
        driver.produce(kwire_topic, [Record(value=b"now")])

        (received,) = driver.consume(kwire_topic, 1)
        assert before - 1 <= received.timestamp <= time.time() * 1000
        assert not received.log_append_time

    def test_log_append_time(self, driver: Driver, kwire_topic_factory: Callable[..., str]) -> None:
        topic = kwire_topic_factory(configs={"message.timestamp.type": "LogAppendTime"})
        before = time.time() * 1000
        driver.produce(topic, self.matrix[:3], compression="gzip")

        received = driver.consume(topic, 3)
        assert all(record.log_append_time for record in received)
        assert all(before - MINUTE <= record.timestamp <= time.time() * 1000 + MINUTE for record in received)
        assert [record.value for record in received] == [record.value for record in self.matrix[:3]]

    def test_a_mebibyte_with_default_limits_of_the_broker(self, driver: Driver, kwire_topic: str) -> None:
        sent = [Record(value=cases.noise(cases.LARGEST_BY_DEFAULT))]
        driver.produce(kwire_topic, sent, largest=cases.MIB)

        assert_same(driver.consume(kwire_topic, 1), sent)

    @pytest.mark.parametrize("compression", ["none", "zstd"])
    def test_twenty_mebibytes_with_raised_limits(
        self, driver: Driver, kwire_topic_factory: Callable[..., str], compression: str
    ) -> None:
        topic = kwire_topic_factory(configs={"max.message.bytes": cases.HUGE_LIMIT})
        sent = [Record(value=cases.noise(cases.HUGE))]
        driver.produce(topic, sent, compression=compression, largest=cases.HUGE_LIMIT)

        assert_same(driver.consume(topic, 1, largest=cases.HUGE_LIMIT), sent)

    def test_a_consumer_gets_a_batch_larger_than_it_asked_for(
        self, driver: Driver, kwire_topic_factory: Callable[..., str]
    ) -> None:
        topic = kwire_topic_factory(configs={"max.message.bytes": 3 * cases.MIB})
        sent = [Record(value=cases.noise(2 * cases.MIB, seed)) for seed in range(2)]
        for record in sent:
            driver.produce(topic, [record], largest=3 * cases.MIB)

        assert_same(driver.consume(topic, 2), sent)

    def test_a_message_over_the_limit_is_refused(self, driver: Driver, kwire_topic: str) -> None:
        with pytest.raises(Refused) as refused:
            driver.produce(kwire_topic, [Record(value=cases.noise(2 * cases.MIB))], largest=3 * cases.MIB)

        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        assert driver.bounds(kwire_topic) == Bounds(0, 0)


class TopicSuite:
    """Topics that are empty, wide, or not there yet."""

    def test_an_empty_topic_gives_what_comes_later(self, driver: Driver, kwire_topic: str) -> None:
        assert driver.bounds(kwire_topic) == Bounds(0, 0)
        assert driver.offset_at(kwire_topic, cases.BASE_TIME) is None

        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(driver.consume, kwire_topic, 1)
            driver.produce(kwire_topic, [Record(value=b"first")])
            (received,) = waiting.result()
        assert (received.offset, received.value) == (0, b"first")

    @pytest.mark.parametrize("count", [1000])
    def test_a_thousand_partitions(self, driver: Driver, kwire_topic_factory: Callable[..., str], count: int) -> None:
        topic = kwire_topic_factory(partitions=count)
        used = range(0, count, 37)
        driver.produce(topic, [Record(value=b"%d" % partition, partition=partition) for partition in used])

        received = driver.consume(topic, len(used), start=dict.fromkeys(range(count), 0))
        assert {(record.partition, record.value) for record in received} == {(p, b"%d" % p) for p in used}

    def test_producing_creates_the_topic(self, driver: Driver, new_name: Callable[[], str]) -> None:
        topic = new_name()
        driver.produce(topic, [Record(value=b"first")])

        assert [record.value for record in driver.consume(topic, 1)] == [b"first"]

    def test_producing_creates_no_topic_where_that_is_off(
        self, driver: Driver, broker_with: Callable[..., Any], new_name: Callable[[], str]
    ) -> None:
        strict = broker_with({"auto.create.topics.enable": "false"})

        with pytest.raises(Refused) as refused:
            driver.at(strict.bootstrap).produce(new_name(), [Record(value=b"first")], patience=2)
        assert refused.value.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.REQUEST_TIMED_OUT)
