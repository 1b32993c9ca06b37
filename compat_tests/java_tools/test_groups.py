"""Groups by the stock tools: ConsoleConsumer, ConsumerGroupCommand, ConsumerPerformance, and what is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from compat_tests import cases
from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.groups.consumer import Settings
from compat_tests.groups.member import Member, members
from compat_tests.java_tools.console import WAIT_MS, json_objects
from compat_tests.java_tools.tools import JavaTools, ToolResult
from kwire.testing.factories import TopicFactory

pytestmark = pytest.mark.xdist_group("java")

COMMAND = "ConsumerGroupCommand"
RECORDS = 20
"""In the topic's first partition, a millisecond apart; the second one has none."""


@pytest.fixture
def topic(kwire_broker: Any, kwire_topic_factory: TopicFactory, settled: Callable[[Callable[[], Any]], Any]) -> str:
    name = kwire_topic_factory(partitions=2)
    settled(lambda: ConfluentDriver(kwire_broker.bootstrap).produce(name, cases.numbered(RECORDS)))
    return name


def read(tools: JavaTools, topic: str, group: str, count: int) -> list[str]:
    """The next values for the group, from the beginning where it has none committed."""
    words = ["--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(count)]
    return [line.strip(" .") for line in tools.run("ConsoleConsumer", *words, "--timeout-ms", str(WAIT_MS)).lines]


def table(result: ToolResult) -> list[dict[str, str]]:
    """What a tool prints in columns, by the column."""
    lines = [line for line in result.lines if line.strip()]
    start = next(place for place, line in enumerate(lines) if line.startswith("GROUP"))
    header = re.split(r"\s{1,}", lines[start].replace("CONSUMER-ID", "CONSUMER-ID").strip())
    return [dict(zip(header, line.split(), strict=False)) for line in lines[start + 1 :]]


def offsets(tools: JavaTools, group: str) -> dict[int, str]:
    """CURRENT-OFFSET by partition."""
    rows = table(tools.run(COMMAND, "--describe", "--group", group, "--offsets"))
    return {int(row["PARTITION"]): row["CURRENT-OFFSET"] for row in rows}


def reset(tools: JavaTools, group: str, *how: str) -> dict[int, str]:
    """NEW-OFFSET by partition."""
    rows = table(tools.run(COMMAND, "--reset-offsets", "--group", group, *how, "--execute"))
    return {int(row["PARTITION"]): row["NEW-OFFSET"] for row in rows}


@contextmanager
def reader(broker: Any, topic: str, group: str) -> Iterator[Member]:
    """A member of the group that has read all, and committed it."""
    with members(Settings("confluent", broker.bootstrap, group, topic)) as (member,):
        member.wait(lambda: len(member.records) == RECORDS)
        member.tell("commit")
        yield member


def test_the_console_consumer_goes_on_in_its_group(java_tools: JavaTools, topic: str) -> None:
    values = [f"{number}" for number in range(RECORDS)]
    assert read(java_tools, topic, topic, 7) == values[:7]
    assert read(java_tools, topic, topic, 5) == values[7:12]
    assert offsets(java_tools, topic)[0] == "12"


def test_a_group_is_described(java_tools: JavaTools, kwire_broker: Any, topic: str) -> None:
    with reader(kwire_broker, topic, topic):
        listed = java_tools.run(COMMAND, "--list").lines
        assert topic in listed
        stable = java_tools.run(COMMAND, "--list", "--state", "stable", "--type", "classic")
        assert topic in " ".join(stable.lines)
        (state,) = table(java_tools.run(COMMAND, "--describe", "--group", topic, "--state"))
        assert {"range", "Stable"} <= set(state.values())
        (member,) = table(java_tools.run(COMMAND, "--describe", "--group", topic, "--members", "--verbose"))
        assert {"rdkafka", "/127.0.0.1", "2"} <= set(member.values())
        rows = table(java_tools.run(COMMAND, "--describe", "--group", topic, "--offsets"))
        first = next(row for row in rows if row["PARTITION"] == "0")
        assert (first["CURRENT-OFFSET"], first["LOG-END-OFFSET"], first["LAG"]) == (str(RECORDS), str(RECORDS), "0")
        refused = java_tools.run(
            COMMAND, "--reset-offsets", "--group", topic, "--topic", topic, "--to-earliest", "--execute"
        )
        assert "inactive" in refused.output + refused.errors
        result = java_tools.run(COMMAND, "--delete", "--group", topic)
        assert "GroupNotEmptyException" in result.output + result.errors


def test_offsets_are_reset_by_every_option(
    java_tools: JavaTools, kwire_broker: Any, topic: str, tmp_path: Path
) -> None:
    read(java_tools, topic, topic, 10)
    of = ["--topic", f"{topic}:0"]
    at = datetime.fromtimestamp((cases.BASE_TIME + 5) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    for how, expected in {
        ("--to-earliest",): "0",
        ("--to-latest",): str(RECORDS),
        ("--to-offset", "7"): "7",
        ("--shift-by", "3"): "10",
        ("--shift-by", "-4"): "6",
        ("--to-current",): "6",
        ("--to-datetime", at): "5",
        ("--by-duration", "P10000D"): "0",
    }.items():
        assert reset(java_tools, topic, *of, *how) == {0: expected}, how
        assert offsets(java_tools, topic)[0] == expected
    assert set(reset(java_tools, topic, "--all-topics", "--to-offset", "4")) <= {0, 1}
    plan = java_tools.run(COMMAND, "--reset-offsets", "--group", topic, *of, "--to-offset", "3", "--export")
    (line,) = [line for line in plan.lines if line.startswith(f'"{topic}"') or line.startswith(topic)]
    file = tmp_path / "plan.csv"
    file.write_text(line + "\n")
    assert reset(java_tools, topic, "--from-file", str(file)) == {0: "3"}
    dry = java_tools.run(COMMAND, "--reset-offsets", "--group", topic, *of, "--to-latest", "--dry-run")
    assert table(dry)[0]["NEW-OFFSET"] == str(RECORDS)
    assert offsets(java_tools, topic)[0] == "3"
    assert read(java_tools, topic, topic, 1) == ["3"]


def test_offsets_and_groups_are_deleted(java_tools: JavaTools, topic: str) -> None:
    read(java_tools, topic, topic, 10)
    java_tools.run(COMMAND, "--delete-offsets", "--group", topic, "--topic", topic)
    assert read(java_tools, topic, topic, 1) == ["0"]
    assert "successful" in java_tools.run(COMMAND, "--delete", "--group", topic).output
    assert topic not in java_tools.run(COMMAND, "--list").lines


def test_what_is_written_is_read_by_the_stock_formatters(java_tools: JavaTools, topic: str) -> None:
    read(java_tools, topic, topic, 10)

    def written(formatter: str) -> list[dict[str, Any]]:
        words = ["--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "3000"]
        name = f"org.apache.kafka.tools.consumer.{formatter}"
        text = java_tools.run("ConsoleConsumer", *words, "--formatter", name).output
        return [entry for entry in json_objects(text) if entry["key"]["data"].get("group") == topic]

    committed = [entry["value"]["data"] for entry in written("OffsetsMessageFormatter")]
    assert committed
    assert {value["offset"] for value in committed} <= {0, 10}
    assert 10 in {value["offset"] for value in committed}
    groups = [entry["value"]["data"] for entry in written("GroupMetadataMessageFormatter")]
    assert [(group["protocolType"], len(group["members"])) for group in groups[-2:]] == [
        ("consumer", 1),
        ("consumer", 0),
    ]


def test_consumer_performance(java_tools: JavaTools, kwire_broker: Any, kwire_topic_factory: TopicFactory) -> None:
    topic = kwire_topic_factory(partitions=3)
    load = ["--num-records", "30000", "--record-size", "100", "--throughput", "-1"]
    java_tools.run("ProducerPerformance", "--topic", topic, *load)
    words = ["--topic", topic, "--num-records", "30000", "--group", topic, "--timeout", str(WAIT_MS)]
    result = java_tools.run("ConsumerPerformance", *words)
    header, row = (line.split(", ") for line in result.lines[-2:])
    assert int(float(dict(zip(header, row, strict=True))["data.consumed.in.nMsg"])) >= 30_000
