"""Alterations of configs: outcomes and errors are those of Apache Kafka 4.3.1."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.config.alter import Alteration, Op, alter, changed, check_alterations, check_replacement
from kwire.config.broker import BrokerConfig
from kwire.config.dynamic import validate_dynamic
from kwire.config.errors import ConfigError, InvalidRequest
from kwire.config.keys import BROKER_KEYS
from kwire.config.topic_keys import TOPIC_KEYS

POLICY = "cleanup.policy"


def alter_topic(current: dict[str, str], *alterations: Alteration) -> dict[str, str]:
    check_alterations(alterations)
    return alter(current, alterations, TOPIC_KEYS)


@pytest.mark.parametrize(
    ("current", "op", "value", "outcome"),
    [
        ({}, Op.SET, "compact", "compact"),
        ({POLICY: "compact"}, Op.APPEND, "delete", "compact,delete"),
        ({POLICY: "compact,delete"}, Op.APPEND, "delete", "compact,delete"),
        ({}, Op.APPEND, "compact,compact", "delete,compact"),
        ({}, Op.APPEND, "delete", "delete"),
        ({POLICY: "compact,delete"}, Op.SUBTRACT, "compact", "delete"),
        ({POLICY: "delete"}, Op.SUBTRACT, "delete", ""),
        ({}, Op.SUBTRACT, "delete", ""),
        ({}, Op.SUBTRACT, "foo", "delete"),
        ({POLICY: ""}, Op.APPEND, "compact", "compact"),
        ({POLICY: "delete"}, Op.APPEND, "compact,,", "delete,compact"),
        ({POLICY: "delete"}, Op.APPEND, ",", "delete"),
        ({POLICY: "delete"}, Op.APPEND, "", "delete,"),
        ({POLICY: ",delete,,compact"}, Op.APPEND, "delete", "delete,compact"),
        ({POLICY: "delete,delete"}, Op.SUBTRACT, "delete", "delete"),
        ({POLICY: "delete, compact"}, Op.SUBTRACT, "compact", "delete, compact"),
        ({POLICY: "compact"}, Op.DELETE, None, None),
        ({}, Op.DELETE, None, None),
    ],
)
def test_one_alteration(current: dict[str, str], op: Op, value: str | None, outcome: str | None) -> None:
    before = dict(current)
    assert alter_topic(current, Alteration(POLICY, op, value)).get(POLICY) == outcome
    assert current == before


def test_deleting_a_key_that_does_not_exist_is_no_error() -> None:
    assert alter_topic({"retention.ms": "5"}, Alteration("foo", Op.DELETE)) == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("alterations", "message"),
    [
        (
            [Alteration("retention.ms", Op.SET, "1"), Alteration("retention.ms", Op.DELETE)],
            "Error due to duplicate config keys",
        ),
        ([Alteration("a", Op.SET), Alteration("b", Op.APPEND)], "Null value not supported for : a, b"),
        ([Alteration("a", 7, "x")], "Unknown operations type 7"),
    ],
)
def test_requests_that_make_no_sense(alterations: list[Alteration], message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        check_alterations(alterations)
    assert str(error.value) == message


def test_replacements_that_make_no_sense() -> None:
    check_replacement([("a", "1"), ("b", "")])
    with pytest.raises(InvalidRequest, match="Error due to duplicate config keys"):
        check_replacement([("a", "1"), ("a", "2")])
    with pytest.raises(InvalidRequest, match="Null value not supported for : b"):
        check_replacement([("a", "1"), ("b", None)])


@pytest.mark.parametrize(
    ("name", "op", "message"),
    [
        ("retention.ms", Op.APPEND, "Can't APPEND to key retention.ms because its type is not LIST."),
        ("retention.ms", Op.SUBTRACT, "Can't SUBTRACT to key retention.ms because its type is not LIST."),
        ("foo", Op.APPEND, "Can't APPEND to key foo because its type is not LIST."),
    ],
)
def test_lists_only(name: str, op: Op, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        alter_topic({}, Alteration(name, op, "5"))
    assert str(error.value) == message
    assert not isinstance(error.value, InvalidRequest)


def test_lists_only_at_the_broker() -> None:
    assert alter({}, [Alteration("log.cleanup.policy", Op.APPEND, "compact")], BROKER_KEYS) == {
        "log.cleanup.policy": "delete,compact"
    }
    with pytest.raises(
        ConfigError, match=re.escape("Config value append is not allowed for config key: message.max.bytes")
    ):
        alter({}, [Alteration("message.max.bytes", Op.APPEND, "5")], BROKER_KEYS)
    with pytest.raises(ConfigError, match=re.escape("Unknown config name: foo")):
        alter({}, [Alteration("foo", Op.SUBTRACT, "5")], BROKER_KEYS)


words = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)


@given(current=words, asked=words.filter(bool))
def test_append_and_subtract_are_a_sets(current: list[str], asked: list[str]) -> None:
    key = "leader.replication.throttled.replicas"
    values = {key: ",".join(current)}
    text = ",".join(asked)
    appended = alter_topic(values, Alteration(key, Op.APPEND, text))[key].split(",")
    assert appended[: len(current)] == current
    assert sorted(appended) == sorted({*current, *asked})
    subtracted = alter_topic(values, Alteration(key, Op.SUBTRACT, text))[key]
    assert [item for item in subtracted.split(",") if item] == [item for item in current if item not in asked]


configs = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"))


@given(configs, configs)
def test_what_changed_leads_from_one_to_the_other(before: dict[str, str], after: dict[str, str]) -> None:
    to_set, to_remove = changed(before, after)
    result = {name: value for name, value in {**before, **to_set}.items() if name not in to_remove}
    assert result == after
    assert all(before.get(name) != value for name, value in to_set.items())


@pytest.mark.parametrize(
    ("proposed", "per_broker", "message"),
    [
        ({"broker.id": "5"}, True, "Cannot update these configs dynamically: [broker.id]"),
        (
            {"num.partitions": "3", "log.retention.ms": "x", "broker.id": "3"},
            True,
            "Cannot update these configs dynamically: [num.partitions, broker.id]",
        ),
        ({"log.retention.hours": "5"}, False, "Cannot update these configs dynamically: [log.retention.hours]"),
        ({"listeners": "PLAINTEXT://:1"}, True, "Cannot update these configs dynamically: [listeners]"),
        (
            {"log.retention.ms": "x"},
            False,
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            {"message.max.bytes": "-1"},
            True,
            "Invalid value -1 for configuration message.max.bytes: Value must be at least 0",
        ),
        ({"log.retention.ms": "0"}, True, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        (
            {"cordoned.log.dirs": ""},
            False,
            "Cannot update these configs at default cluster level, broker id must be specified: [cordoned.log.dirs]",
        ),
        (
            {"max.connection.creation.rate": "2"},
            True,
            "Invalid value 2 for configuration max.connection.creation.rate: "
            "this version of kwire supports only its default, '2147483647'",
        ),
        (
            {"listener.name.plaintext.max.connections": "2"},
            True,
            "This version of kwire has no configuration for single listeners: "
            "[listener.name.plaintext.max.connections]",
        ),
        (
            {"max.connections.per.ip": "0"},
            False,
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
        ),
        ({"log.cleaner.threads": "0"}, True, "Log cleaner threads should be at least 1"),
    ],
)
def test_what_cannot_be_set_at_run_time(proposed: dict[str, str], per_broker: bool, message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        validate_dynamic(BrokerConfig({}), proposed, per_broker=per_broker)
    assert str(error.value) == message


def test_what_can_be_set_at_run_time() -> None:
    config = BrokerConfig({}).with_dynamic({"max.connections.per.ip.overrides": "localhost:5"})
    validate_dynamic(config, {"log.retention.ms": "5", "foo": "bar"}, per_broker=True)
    validate_dynamic(config, {"max.connections.per.ip": "0"}, per_broker=False)
    validate_dynamic(config, {"num.io.threads": "9"}, per_broker=False)
    validate_dynamic(config, {"cordoned.log.dirs": ""}, per_broker=True)
    with pytest.raises(InvalidRequest):
        validate_dynamic(config, {"max.connections.per.ip": "0"}, per_broker=True)
