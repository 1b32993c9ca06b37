"""Groups by the stock tools: ConsoleConsumer, ConsumerPerformance, and what the coordinator writes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import TIMEOUT, Record
from compat_tests.groups.consumer import Settings
from compat_tests.groups.member import members
from compat_tests.java_tools.console import WAIT_MS, consume_in_group, coordinators_records, produce
from compat_tests.java_tools.tools import JavaTools
from kwire.testing.factories import TopicFactory

pytestmark = pytest.mark.xdist_group("java")

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])
VALUES = [str(number) for number in range(20)]


@pytest.fixture
def topic(java_tools: JavaTools, kwire_topic: str) -> str:
    """With VALUES, by the console producer."""
    produce(java_tools, kwire_topic, VALUES, whole_records=False)
    return kwire_topic


@PROTOCOLS
def test_the_console_consumer_goes_on_in_its_group(
    java_tools: JavaTools, kwire_broker: Any, topic: str, protocol: str
) -> None:
    assert consume_in_group(java_tools, topic, topic, 7, protocol=protocol) == VALUES[:7]
    assert consume_in_group(java_tools, topic, topic, 5, protocol=protocol) == VALUES[7:12]
    assert ConfluentDriver(kwire_broker.bootstrap).committed(topic, topic) == [12]


@PROTOCOLS
def test_the_console_consumer_shares_with_another_client(
    java_tools: JavaTools, kwire_broker: Any, kwire_topic_factory: TopicFactory, protocol: str
) -> None:
    """A partition each; when the console consumer leaves, the other goes on where it stopped."""
    topic = kwire_topic_factory(partitions=2)
    driver = ConfluentDriver(kwire_broker.bootstrap)

    def produce(value: str) -> None:
        driver.produce(topic, [Record(value=value.encode(), partition=partition) for partition in (0, 1)])

    with (
        members(Settings("confluent", kwire_broker.bootstrap, topic, topic, protocol, auto_commit=True)) as (member,),
        ThreadPoolExecutor(1) as thread,
    ):
        member.wait(lambda: member.assigned == {0, 1})
        produce("before")
        member.wait(lambda: member.values.count("before") == 2)
        console = thread.submit(consume_in_group, java_tools, topic, topic, 1, protocol=protocol)
        member.wait(lambda: len(member.assigned) == 1)
        produce("one each")
        assert console.result() == ["one each"]
        member.wait(lambda: member.assigned == {0, 1})
        produce("after")
        member.wait(lambda: member.values.count("after") == 2)
    assert sorted(member.values) == ["after", "after", "before", "before", "one each"]


def test_what_is_written_is_read_by_the_stock_formatters(java_tools: JavaTools, topic: str) -> None:
    consume_in_group(java_tools, topic, topic, 10)

    def written(formatter: str) -> list[tuple[Any, Any]]:
        """(key, value) of the group's records. Those of other groups may be tombstones."""
        records = coordinators_records(java_tools, "__consumer_offsets", topic, formatter)
        own = [record for record in records if record["key"]["data"]["group"] == topic]
        return [(record["key"]["data"], record["value"]["data"]) for record in own]

    deadline = time.monotonic() + TIMEOUT
    while True:
        committed, groups = written("OffsetsMessageFormatter"), written("GroupMetadataMessageFormatter")
        sizes = [len(value["members"]) for _, value in groups]
        if sizes[-2:] == [1, 0] and committed:
            break
        assert time.monotonic() < deadline, (committed, groups)
    key, value = committed[-1]
    assert (key["topic"], key["partition"], value["offset"]) == (topic, 0, 10)
    assert {(value["protocolType"], value["protocol"]) for _, value in groups[-2:-1]} == {("consumer", "range")}


def test_consumer_performance(java_tools: JavaTools, kwire_broker: Any, kwire_topic_factory: TopicFactory) -> None:
    topic = kwire_topic_factory(partitions=3)
    load = ["--num-records", "30000", "--record-size", "100", "--throughput", "-1"]
    java_tools.run("ProducerPerformance", "--topic", topic, *load)
    words = ["--topic", topic, "--num-records", "30000", "--group", topic, "--timeout", str(WAIT_MS)]
    result = java_tools.run("ConsumerPerformance", *words)
    header, row = (line.split(", ") for line in result.lines[-2:])
    assert int(float(dict(zip(header, row, strict=True))["data.consumed.in.nMsg"])) >= 30_000
    assert sum(ConfluentDriver(kwire_broker.bootstrap).committed(topic, topic, 3)) == 30_000
