"""The suites, by kcat, and its listing of topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests import cases
from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import Record
from compat_tests.kcat.driver import KcatDriver
from compat_tests.suites.records import RecordSuite, TopicSuite
from compat_tests.suites.seeking import SeekSuite


class TestRecords(RecordSuite):
    matrix = cases.UNTIMED_TEXT


class TestTopics(TopicSuite):
    def test_listing(self, driver: KcatDriver, kwire_topic_factory: Callable[..., str]) -> None:
        topic = kwire_topic_factory(partitions=3)

        assert driver.partition_count(topic) == 3
        assert topic in driver.run("-L").stdout


class TestGroups:
    def test_a_group_goes_on_where_it_stopped(
        self, driver: KcatDriver, kwire_broker: Any, kwire_topic_factory: Callable[..., str]
    ) -> None:
        topic = kwire_topic_factory(partitions=2)
        writer = ConfluentDriver(kwire_broker.bootstrap)
        for expected in (["0", "1", "2"], ["3", "4"]):
            writer.produce(topic, [Record(value=value.encode()) for value in expected])
            # It ends where all partitions do, and commits when it leaves the group.
            options = ["-X", "auto.offset.reset=earliest", "-e", "-q", "-f", "%s\n"]
            assert driver.run("-G", topic, *options, topic).stdout.splitlines() == expected


class TestSeeking(SeekSuite):
    @pytest.fixture
    def writer(self, kwire_broker: Any) -> ConfluentDriver:
        # kcat stamps what it writes with the present time.
        return ConfluentDriver(kwire_broker.bootstrap)

    @pytest.mark.parametrize(
        ("offset", "first", "count"), [(f"s@{cases.BASE_TIME + 177}", 177, 10), ("-5", 295, 5), ("beginning", 0, 300)]
    )
    def test_offsets_in_words(self, driver: KcatDriver, topic: str, offset: str, first: int, count: int) -> None:
        printed = driver.run("-C", "-t", topic, "-p", "0", "-o", offset, "-c", str(count), "-f", "%o %T %k\n").stdout
        expected = [f"{place} {cases.BASE_TIME + place} {place}" for place in range(first, first + count)]
        assert printed.splitlines() == expected
