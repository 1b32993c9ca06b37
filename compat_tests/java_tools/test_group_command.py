"""ConsumerGroupCommand: groups listed and described, their offsets reset and deleted, and themselves."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from compat_tests import cases
from compat_tests.confluent.driver import ConfluentDriver
from compat_tests.driver import TIMEOUT, Record
from compat_tests.groups.consumer import Settings
from compat_tests.groups.member import members
from compat_tests.java_tools.console import consume_in_group
from compat_tests.java_tools.tools import JavaTools, ToolResult
from kwire.testing.factories import TopicFactory

pytestmark = pytest.mark.xdist_group("java")

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])
RECORDS = 20
"""In the topic's first partition, a millisecond apart; the second one has none."""
HOUR_MS = 3_600_000

Place = tuple[str, int]
"""Topic and partition."""


class GroupCommand:
    """The tool, about one group."""

    def __init__(self, tools: JavaTools, group: str) -> None:
        self._tools = tools
        self.group = group

    def run(self, *arguments: str, exit_code: int = 0) -> ToolResult:
        return self._tools.run("ConsumerGroupCommand", *arguments, exit_code=exit_code)

    def listed(self, *filters: str) -> list[dict[str, str]]:
        """The group's rows of `--list` with states and types; filters are further arguments."""
        rows = table(self.run("--list", *(filters or ("--state", "--type"))))
        return [row for row in rows if row["GROUP"] == self.group]

    def described(self, *what: str) -> list[dict[str, str]]:
        return table(self.run("--describe", "--group", self.group, *what))

    def offsets(self) -> dict[Place, str]:
        """CURRENT-OFFSET by partition."""
        rows = self.described("--offsets")
        return {(row["TOPIC"], int(row["PARTITION"])): row["CURRENT-OFFSET"] for row in rows}

    def reset(self, *how: str, execute: str = "--execute") -> dict[Place, str]:
        """NEW-OFFSET by partition."""
        rows = table(self.run("--reset-offsets", "--group", self.group, *how, execute))
        return {(row["TOPIC"], int(row["PARTITION"])): row["NEW-OFFSET"] for row in rows}

    def until_empty(self) -> None:
        """A consumer that closes does not wait for the answer to its farewell."""
        deadline = time.monotonic() + TIMEOUT
        while [row["STATE"] for row in self.listed()] != ["Empty"]:
            assert time.monotonic() < deadline, self.listed()


def table(result: ToolResult) -> list[dict[str, str]]:
    """What the tool prints in columns, by the column; their names and cells have no blanks, but for a coordinator's."""
    lines = [re.sub(r"(COORDINATOR|:\d+) +\((\w+)\)", r"\1(\2)", line) for line in result.lines if line.strip()]
    start = next(place for place, line in enumerate(lines) if line.startswith("GROUP "))
    header = lines[start].split()
    return [dict(zip(header, line.split(), strict=True)) for line in lines[start + 1 :]]


@pytest.fixture
def topic(kwire_broker: Any, kwire_topic_factory: TopicFactory, settled: Callable[[Callable[[], Any]], Any]) -> str:
    name = kwire_topic_factory(partitions=2)
    settled(lambda: ConfluentDriver(kwire_broker.bootstrap).produce(name, cases.numbered(RECORDS)))
    return name


@pytest.fixture
def command(java_tools: JavaTools, topic: str) -> GroupCommand:
    """About a group that is named as the topic."""
    return GroupCommand(java_tools, topic)


@contextmanager
def reader(broker: Any, topic: str, protocol: str) -> Iterator[None]:
    """A member of the group that has read all, and committed it."""
    with members(Settings("confluent", broker.bootstrap, topic, topic, protocol)) as (member,):
        member.wait(lambda: len(member.records) == RECORDS)
        member.tell("commit")
        yield


@PROTOCOLS
def test_a_group_with_a_member(command: GroupCommand, kwire_broker: Any, topic: str, protocol: str) -> None:
    with reader(kwire_broker, topic, protocol):
        assert command.run("--list").lines.count(topic) == 1
        kind = {"classic": "Classic", "consumer": "Consumer"}
        other = "consumer" if protocol == "classic" else "classic"
        assert command.listed() == [{"GROUP": topic, "TYPE": kind[protocol], "STATE": "Stable"}]
        assert command.listed("--state", "stable", "--type", protocol) == command.listed()
        assert command.listed("--state", "empty", "--type", protocol) == []
        assert command.listed("--state", "stable", "--type", other) == []

        (state,) = command.described("--state")
        assert state["COORDINATOR(ID)"].startswith(f"{kwire_broker.bootstrap}(")
        assert (state["ASSIGNMENT-STRATEGY"], state["STATE"], state["#MEMBERS"]) == ("range", "Stable", "1")
        (member,) = command.described("--members")
        assert (member["HOST"], member["CLIENT-ID"], member["#PARTITIONS"]) == ("/127.0.0.1", "rdkafka", "2")
        owner = {name: member[name] for name in ("CONSUMER-ID", "HOST", "CLIENT-ID")}
        places = [("0", str(RECORDS), str(RECORDS), "0"), ("1", "-", "0", "-")]
        columns = ("PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
        assert command.described("--offsets") == [
            {"GROUP": topic, "TOPIC": topic, **dict(zip(columns, place, strict=True)), **owner} for place in places
        ]

        refused = command.run("--reset-offsets", "--group", topic, "--topic", topic, "--to-earliest", "--execute")
        assert "the current state is Stable" in refused.output
        assert "GroupNotEmptyException" in command.run("--delete", "--group", topic).output
        kept = command.run("--delete-offsets", "--group", topic, "--topic", topic)
        assert "GroupSubscribedToTopicException" in kept.output
        assert command.offsets()[topic, 0] == str(RECORDS)


@PROTOCOLS
def test_a_group_in_every_detail(command: GroupCommand, kwire_broker: Any, topic: str, protocol: str) -> None:
    with reader(kwire_broker, topic, protocol):
        (state,) = command.described("--state", "--verbose")
        (member,) = command.described("--members", "--verbose")
        first, _ = command.described("--offsets", "--verbose")
    epochs = {state["GROUP-EPOCH"], state["TARGET-ASSIGNMENT-EPOCH"], member["CURRENT-EPOCH"], member["TARGET-EPOCH"]}
    (epoch,) = epochs
    assert epoch == "-" if protocol == "classic" else int(epoch) > 0
    assert member["CURRENT-ASSIGNMENT"] == f"{topic}:0,1"
    assert member["TARGET-ASSIGNMENT"] == ("-" if protocol == "classic" else member["CURRENT-ASSIGNMENT"])
    assert (first["LEADER-EPOCH"], first["CURRENT-OFFSET"]) == ("0", str(RECORDS))


@PROTOCOLS
def test_a_group_that_was_left(command: GroupCommand, java_tools: JavaTools, topic: str, protocol: str) -> None:
    consume_in_group(java_tools, topic, topic, 7, protocol=protocol)
    command.until_empty()
    assert command.listed("--state", "empty", "--type", protocol) == command.listed()
    assert command.offsets() == {(topic, 0): "7", (topic, 1): "0"}
    assert "has no active members" in command.run("--describe", "--group", topic, "--members").errors


@PROTOCOLS
def test_offsets_are_reset_by_every_option(
    command: GroupCommand,
    java_tools: JavaTools,
    kwire_broker: Any,
    topic: str,
    kwire_topic_factory: TopicFactory,
    tmp_path: Path,
    protocol: str,
) -> None:
    consume_in_group(java_tools, topic, topic, 10, protocol=protocol)
    command.until_empty()
    time_of_5 = datetime.fromtimestamp((cases.BASE_TIME + 5) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    for how, expected in {
        ("--to-current",): "10",
        ("--to-earliest",): "0",
        ("--to-latest",): str(RECORDS),
        ("--to-offset", "7"): "7",
        ("--shift-by", "3"): "10",
        ("--shift-by", "-4"): "6",
        ("--to-datetime", time_of_5): "5",
        ("--to-offset", "4711"): str(RECORDS),
    }.items():
        assert command.reset("--topic", f"{topic}:0", *how) == {(topic, 0): expected}, how
        assert command.offsets()[topic, 0] == expected

    recent, now = kwire_topic_factory(), int(time.time() * 1000)
    records = [Record(value=b"-", timestamp=now - hours * HOUR_MS) for hours in (3, 1)]
    ConfluentDriver(kwire_broker.bootstrap).produce(recent, records)
    assert command.reset("--topic", recent, "--by-duration", "PT2H") == {(recent, 0): "1"}

    everything = {(topic, 0): "2", (topic, 1): "0", (recent, 0): "2"}
    before = command.offsets()
    assert command.reset("--all-topics", "--to-offset", "2", execute="--dry-run") == everything
    assert command.offsets() == before
    plan = command.run("--reset-offsets", "--group", topic, "--all-topics", "--to-offset", "2", "--export")
    assert command.offsets() == before
    file = tmp_path / "plan.csv"
    file.write_text(plan.output)
    assert command.reset("--from-file", str(file)) == everything
    assert command.offsets() == everything
    assert consume_in_group(java_tools, topic, topic, 1, protocol=protocol) == ["2 "]


@PROTOCOLS
def test_offsets_and_groups_are_deleted(
    command: GroupCommand, java_tools: JavaTools, topic: str, protocol: str
) -> None:
    consume_in_group(java_tools, topic, topic, 10, protocol=protocol)
    command.until_empty()
    assert "Request succeed" in command.run("--delete-offsets", "--group", topic, "--topic", f"{topic}:0").output
    assert command.offsets() == {(topic, 1): "0"}
    assert "was successful" in command.run("--delete", "--group", topic).output
    assert command.listed() == []
    assert "GroupIdNotFoundException" in command.run("--delete", "--group", topic).output
