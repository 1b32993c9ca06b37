"""The suites, by kcat, and its listing of topics."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests import cases
from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import TIMEOUT, Record
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

    def test_two_share_a_topic_and_one_takes_over_when_the_other_leaves(
        self, driver: KcatDriver, kwire_broker: Any, kwire_topic_factory: Callable[..., str], tmp_path: Path
    ) -> None:
        topic = kwire_topic_factory(partitions=4)
        writer = ConfluentDriver(kwire_broker.bootstrap)
        written: list[str] = []
        members: list[tuple[subprocess.Popen[bytes], Path]] = []

        def printed(member: int) -> list[list[str]]:
            """(partition, value) of each record."""
            return [line.split() for line in members[member][1].read_text().splitlines() if line.endswith(";")]

        def until(holds: Callable[[], bool]) -> None:
            deadline = time.monotonic() + TIMEOUT
            while not holds():
                assert time.monotonic() < deadline, [printed(member)[-5:] for member in range(len(members))]
                time.sleep(0.05)

        def shown(pattern: Callable[[], bool]) -> bool:
            """Whether it holds, now that one more record was written to each partition."""
            values = [f"{len(written) + partition};" for partition in range(4)]
            writer.produce(topic, [Record(value=value.encode(), partition=n) for n, value in enumerate(values)])
            written.extend(values)
            return pattern()

        def partitions(member: int, among_last: int) -> set[str]:
            return {partition for partition, _ in printed(member)[-among_last:]}

        def shared_out() -> bool:
            first, second = partitions(0, 4), partitions(1, 4)
            return len(first) == len(second) == 2 and first.isdisjoint(second)

        options = ["-X", "auto.offset.reset=earliest", "-q", "-u", "-f", "%p %s\n"]
        try:
            for number in range(2):
                output = tmp_path / str(number)
                with output.open("wb") as file:
                    members.append((driver.start("-G", topic, *options, topic, output=file), output))
            until(lambda: shown(shared_out))
            shown(lambda: True)
            latest = set(written[-4:])
            until(lambda: {value for member in range(2) for _, value in printed(member)} >= latest)
            first, second = ({value for _, value in printed(member)} & latest for member in range(2))
            assert first.isdisjoint(second)
            members[0][0].terminate()
            assert members[0][0].wait(TIMEOUT) == 0
            # What it had taken but not printed is lost: kcat commits what it has taken.
            before = len(written)
            until(lambda: shown(lambda: len(partitions(1, 4)) == 4))
            until(lambda: {value for _, value in printed(1)} >= set(written[before:]))
        finally:
            for process, _ in members:
                process.kill()
                process.wait()


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
