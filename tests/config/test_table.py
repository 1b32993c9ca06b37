"""The tables against Apache Kafka's own definitions: apache-kafka-4.3.1.tsv lists them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kwire.config.definition import ConfigKey, Status
from kwire.config.keys import BROKER_KEYS
from kwire.config.topic import LogConfig
from kwire.config.topic_keys import SAME_SETTING, SYNONYMS, TOPIC_KEYS
from kwire.config.types import to_text

OWN_DEFAULTS = {
    "node.id": "1",
    "listeners": "PLAINTEXT://localhost:9092",
    "socket.receive.buffer.bytes": "-1",
    "log.dir": "./kwire-data",
    "process.roles": "",
    "controller.listener.names": "",
    "metric.reporters": "",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Where kwire's default is not Apache Kafka's."""

NOT_YET_DYNAMIC = {"listeners", "listener.security.protocol.map"}
"""What Apache Kafka lets an admin change at run time and kwire does not."""

ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "apache-kafka-4.3.1.tsv").read_text().splitlines()
    if not line.startswith("#")
]


def key_of(kind: str, name: str) -> ConfigKey:
    return (BROKER_KEYS if kind == "broker" else TOPIC_KEYS)[name]


def test_every_key_is_there_and_no_other() -> None:
    assert {name for kind, name, *_ in ROWS if kind == "topic"} == set(TOPIC_KEYS)
    dynamic_only = {name for name, key in BROKER_KEYS.items() if key.admin_only}
    assert {name for kind, name, *_ in ROWS if kind == "broker"} | dynamic_only == set(BROKER_KEYS)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}:{row[1]}" for row in ROWS])
def test_a_key_is_as_in_apache_kafka(row: list[str]) -> None:
    kind, name, kafka_type, default, importance, valid, scope, internal = row
    key = key_of(kind, name)
    assert key.type.name == kafka_type
    assert key.importance.name == importance
    assert key.internal == (internal == "internal")
    if kind == "broker" and name in NOT_YET_DYNAMIC:
        scope = "read-only"
    assert key.scope.value == scope
    if kind == "broker" and name in OWN_DEFAULTS:
        assert key.default_text == OWN_DEFAULTS[name]
    else:
        assert key.default_text == (None if default == "(null)" else default)
    if valid and not name.startswith("controller.quorum.") and name != "authorizer.class.name":
        assert str(key.validity) == valid


@pytest.mark.parametrize("key", [*BROKER_KEYS.values(), *TOPIC_KEYS.values()], ids=lambda key: key.name)
def test_a_key_has_a_sentence_and_a_default_that_is_valid(key: ConfigKey) -> None:
    assert key.doc.endswith(".")
    assert key.doc[0].isupper() or key.doc.startswith("SO_")
    assert "\n" not in key.doc
    if key.default_text is not None and key.name not in ("process.roles", "controller.listener.names"):
        assert key.parse(key.default_text) == key.default
        assert to_text(key.default) == key.default_text


def test_defaults_that_are_not_apache_kafkas_say_so() -> None:
    for name in OWN_DEFAULTS.keys() - {"node.id", "process.roles", "controller.listener.names"}:
        assert "Apache Kafka:" in BROKER_KEYS[name].doc


def test_names_can_be_told_from_their_environment_variables() -> None:
    assert not [name for name in BROKER_KEYS if "_" in name or "-" in name or name != name.lower()]


def test_krafts_keys_are_marked() -> None:
    for name, key in BROKER_KEYS.items():
        if name.startswith(("controller.", "metadata.", "process.", "internal.metadata.")):
            assert key.status is Status.KRAFT, name


def test_topic_keys_have_a_field_and_their_broker_keys_exist() -> None:
    fields = {name.replace(".", "_") for name in TOPIC_KEYS} - {"internal_segment_bytes"}
    assert fields == {each.name for each in dataclasses.fields(LogConfig) if each.init}
    for name, synonyms in SYNONYMS.items():
        assert TOPIC_KEYS[name].name == name
        for synonym in synonyms:
            assert synonym.broker_key in BROKER_KEYS
    assert SAME_SETTING["log.retention.hours"] == (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    )
    assert "log.flush.scheduler.interval.ms" not in SAME_SETTING
