"""ConfigCommand."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from compat_tests.java_tools.tools import JavaTools

pytestmark = pytest.mark.xdist_group("java")

Settled = Callable[[Callable[[], None]], None]
BROKER_KEY = "log.message.timestamp.after.max.ms"
"""A setting that can change at run time and troubles no other test when it does."""


def describe(tools: JavaTools, *entity: str) -> dict[str, str]:
    """Each setting that `--describe` prints, and the rest of its line."""
    lines = tools.run("ConfigCommand", "--describe", *entity).lines
    return dict(line.strip().split("=", 1) for line in lines if line.startswith("  "))


def alter(tools: JavaTools, *arguments: str, exit_code: int = 0) -> str:
    """Runs `--alter`; returns all that the tool printed."""
    result = tools.run("ConfigCommand", "--alter", *arguments, exit_code=exit_code)
    return result.output + result.errors


def topic_entity(name: str) -> list[str]:
    return ["--entity-type", "topics", "--entity-name", name]


def test_topic_settings_are_set_shown_and_deleted(java_tools: JavaTools, kwire_topic: str, settled: Settled) -> None:
    entity = topic_entity(kwire_topic)
    assert "Completed updating config" in alter(
        java_tools, *entity, "--add-config", "max.message.bytes=2000000,cleanup.policy=[compact,delete]"
    )

    def both_set() -> None:
        got = describe(java_tools, *entity)
        synonyms = "DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000000, DEFAULT_CONFIG:message.max.bytes=1048588"
        assert got["max.message.bytes"] == f"2000000 sensitive=false synonyms={{{synonyms}}}"
        assert got["cleanup.policy"].startswith("compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:")

    def one_left() -> None:
        got = describe(java_tools, *entity)
        assert "max.message.bytes" not in got
        assert "cleanup.policy" in got

    settled(both_set)
    alter(java_tools, *entity, "--delete-config", "max.message.bytes")
    settled(one_left)


def test_all_settings_of_a_topic_with_their_defaults(java_tools: JavaTools, kwire_topic: str) -> None:
    got = describe(java_tools, *topic_entity(kwire_topic), "--all")
    expected = {
        "cleanup.policy": "delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "compression.type": "producer sensitive=false synonyms={DEFAULT_CONFIG:compression.type=producer}",
        "max.message.bytes": "1048588 sensitive=false synonyms={DEFAULT_CONFIG:message.max.bytes=1048588}",
        "segment.bytes": "1073741824 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=1073741824}",
        "retention.ms": "604800000 sensitive=false synonyms={}",
        "message.timestamp.type": (
            "CreateTime sensitive=false synonyms={DEFAULT_CONFIG:log.message.timestamp.type=CreateTime}"
        ),
    }
    assert {key: got[key] for key in expected} == expected
    assert len(got) >= 30


@pytest.mark.parametrize(
    ("setting", "error"),
    [
        ("retention.ms=soon", "Invalid value soon for configuration retention.ms"),
        ("cleanup.policy=tidy", "Invalid value"),
        ("no.such.key=1", "Unknown topic config name: no.such.key"),
    ],
    ids=["type", "value", "key"],
)
def test_an_invalid_setting_is_refused(java_tools: JavaTools, kwire_topic: str, setting: str, error: str) -> None:
    said = alter(java_tools, *topic_entity(kwire_topic), "--add-config", setting, exit_code=1)
    assert "InvalidConfigurationException" in said
    assert error in said


def test_settings_of_a_topic_that_does_not_exist(java_tools: JavaTools, new_name: Callable[[], str]) -> None:
    said = alter(java_tools, *topic_entity(new_name()), "--add-config", "retention.ms=100000", exit_code=1)
    assert "UnknownTopicOrPartitionException" in said


def test_broker_settings_change_at_run_time(java_tools: JavaTools, kwire_topic: str, settled: Settled) -> None:
    described = java_tools.run("TopicCommand", "--describe", "--topic", kwire_topic).output
    broker = re.findall(r"Leader: (\d+)", described)[0]
    default = ["--entity-type", "brokers", "--entity-default"]
    one = ["--entity-type", "brokers", "--entity-name", broker]
    alter(java_tools, *default, "--add-config", f"{BROKER_KEY}=7200000")

    def default_set() -> None:
        assert describe(java_tools, *default)[BROKER_KEY].startswith("7200000 ")
        synonyms = f"DYNAMIC_DEFAULT_BROKER_CONFIG:{BROKER_KEY}=7200000, DEFAULT_CONFIG:{BROKER_KEY}=3600000"
        assert describe(java_tools, *one, "--all")[BROKER_KEY] == f"7200000 sensitive=false synonyms={{{synonyms}}}"
        # A topic without a value of its own follows.
        topic = describe(java_tools, *topic_entity(kwire_topic), "--all")["message.timestamp.after.max.ms"]
        assert topic == f"7200000 sensitive=false synonyms={{{synonyms}}}"

    def default_gone() -> None:
        assert BROKER_KEY not in describe(java_tools, *default)
        assert describe(java_tools, *one, "--all")[BROKER_KEY].startswith("3600000 ")

    settled(default_set)
    alter(java_tools, *default, "--delete-config", BROKER_KEY)
    settled(default_gone)


def test_a_read_only_broker_setting_is_refused(java_tools: JavaTools, kwire_topic: str) -> None:
    default = ["--entity-type", "brokers", "--entity-default"]
    said = alter(java_tools, *default, "--add-config", "log.dirs=/tmp", exit_code=1)
    assert "InvalidRequestException" in said
    assert "log.dirs" in said


def test_settings_of_a_group(java_tools: JavaTools, settled: Settled) -> None:
    """Of one that nobody has joined."""
    entity = ["--entity-type", "groups", "--entity-name", "a-group-with-settings"]
    key = "consumer.session.timeout.ms"
    assert "Completed updating config" in alter(java_tools, *entity, "--add-config", f"{key}=50000")

    def shown() -> None:
        synonyms = f"DYNAMIC_GROUP_CONFIG:{key}=50000, DEFAULT_CONFIG:group.{key}=45000"
        assert describe(java_tools, *entity) == {key: f"50000 sensitive=false synonyms={{{synonyms}}}"}

    settled(shown)
    refused = alter(java_tools, *entity, "--add-config", f"{key}=1", exit_code=1)
    assert f"{key} must be greater than or equal to group.consumer.min.session.timeout.ms" in refused
    alter(java_tools, *entity, "--delete-config", key)

    def gone() -> None:
        assert describe(java_tools, *entity) == {}

    settled(gone)
