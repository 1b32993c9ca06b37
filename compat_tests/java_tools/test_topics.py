"""TopicCommand."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from compat_tests.java_tools.tools import JavaTools

pytestmark = pytest.mark.xdist_group("java")

Settled = Callable[[Callable[[], None]], None]
NewName = Callable[[], str]


def describe(tools: JavaTools, topic: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """What `--describe` prints: the topic's fields, then those of each partition."""
    lines = tools.run("TopicCommand", "--describe", "--topic", topic).lines
    first, *rest = [dict(re.findall(r"(\w+): ?([^\t]*)", line)) for line in lines]
    return first, rest


def test_create_describe_list_and_delete(java_tools: JavaTools, new_name: NewName, settled: Settled) -> None:
    topic = new_name()
    configs = ["--config", "retention.ms=100000", "--config", "compression.type=zstd"]
    result = java_tools.run("TopicCommand", "--create", "--topic", topic, "--partitions", "3", *configs)
    assert result.lines[-1] == f"Created topic {topic}."

    def described() -> None:
        fields, partitions = describe(java_tools, topic)
        assert fields["Topic"] == topic
        assert re.fullmatch(r"[A-Za-z0-9_-]{22}", fields["TopicId"])
        assert (fields["PartitionCount"], fields["ReplicationFactor"]) == ("3", "1")
        assert {"retention.ms=100000", "compression.type=zstd"} <= set(fields["Configs"].split(","))
        assert [line["Partition"] for line in partitions] == ["0", "1", "2"]
        for line in partitions:
            assert line["Leader"] == line["Replicas"] == line["Isr"]
        assert topic in java_tools.run("TopicCommand", "--list").lines

    def gone() -> None:
        assert topic not in java_tools.run("TopicCommand", "--list").lines

    settled(described)
    java_tools.run("TopicCommand", "--delete", "--topic", topic)
    settled(gone)


def test_a_topic_that_exists_is_not_created_again(java_tools: JavaTools, kwire_topic: str) -> None:
    refused = java_tools.run("TopicCommand", "--create", "--topic", kwire_topic, exit_code=1)
    assert f"Topic '{kwire_topic}' already exists." in refused.output
    java_tools.run("TopicCommand", "--create", "--topic", kwire_topic, "--if-not-exists")


def test_replicas_assigned_by_hand(
    java_tools: JavaTools, kwire_topic: str, new_name: NewName, settled: Settled
) -> None:
    broker = describe(java_tools, kwire_topic)[1][0]["Leader"]
    topic = new_name()
    java_tools.run("TopicCommand", "--create", "--topic", topic, "--replica-assignment", f"{broker},{broker}")

    def described() -> None:
        assert [line["Replicas"] for line in describe(java_tools, topic)[1]] == [broker, broker]

    settled(described)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--replication-factor", "3"], "InvalidReplicationFactorException"),
        (["--replica-assignment", "999"], "InvalidReplicaAssignmentException"),
        (["--config", "segment.bytes=-5"], "Invalid value -5 for configuration segment.bytes"),
    ],
    ids=["replication-factor", "unknown-broker", "config-value"],
)
def test_creation_refused(java_tools: JavaTools, new_name: NewName, arguments: list[str], error: str) -> None:
    topic = new_name()
    result = java_tools.run("TopicCommand", "--create", "--topic", topic, *arguments, exit_code=1)
    assert error in result.output + result.errors
    assert topic not in java_tools.run("TopicCommand", "--list").lines


def test_partitions_are_added_and_never_taken(java_tools: JavaTools, kwire_topic: str, settled: Settled) -> None:
    java_tools.run("TopicCommand", "--alter", "--topic", kwire_topic, "--partitions", "4")

    def described() -> None:
        assert len(describe(java_tools, kwire_topic)[1]) == 4

    settled(described)
    refused = java_tools.run("TopicCommand", "--alter", "--topic", kwire_topic, "--partitions", "2", exit_code=1)
    assert "currently has 4 partition(s); 2 would not be an increase" in refused.output


def test_a_topic_that_does_not_exist(java_tools: JavaTools, new_name: NewName) -> None:
    for action in (["--describe"], ["--delete"], ["--alter", "--partitions", "2"]):
        result = java_tools.run("TopicCommand", *action, "--topic", new_name(), exit_code=1)
        assert "does not exist as expected" in result.output


@pytest.mark.parametrize("filter_", ["--under-replicated-partitions", "--unavailable-partitions"])
def test_no_partition_is_in_trouble(java_tools: JavaTools, kwire_topic: str, filter_: str) -> None:
    assert java_tools.run("TopicCommand", "--describe", "--topic", kwire_topic, filter_).output == ""


def test_a_thousand_partitions(java_tools: JavaTools, new_name: NewName, settled: Settled) -> None:
    topic = new_name()
    java_tools.run("TopicCommand", "--create", "--topic", topic, "--partitions", "1000")

    def complete() -> None:
        assert [line["Partition"] for line in describe(java_tools, topic)[1]] == [str(i) for i in range(1000)]
        offsets = java_tools.run("GetOffsetShell", "--topic", topic).lines
        assert sorted(offsets) == sorted(f"{topic}:{i}:0" for i in range(1000))

    settled(complete)
    java_tools.run("TopicCommand", "--delete", "--topic", topic)
