"""Configs of groups: the table, what a group may have, and the rows for DescribeConfigs."""

from __future__ import annotations

import pytest

from kwire.config.broker import BrokerConfig
from kwire.config.definition import ConfigKey, Status
from kwire.config.describe import ConfigRow, ConfigSource, SynonymRow, describe_group
from kwire.config.errors import ConfigError
from kwire.config.group import validate_group_configs
from kwire.config.group_keys import BROKER_SYNONYMS, GROUP_KEYS
from kwire.config.keys import BROKER_KEYS

DEFAULT = ConfigSource.DEFAULT_CONFIG
STATIC = ConfigSource.STATIC_BROKER_CONFIG
GROUP = ConfigSource.GROUP_CONFIG
SESSION, HEARTBEAT, ASSIGNMENT = (
    f"consumer.{name}" for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
)


@pytest.mark.parametrize("key", GROUP_KEYS.values(), ids=lambda key: key.name)
def test_a_key_has_a_sentence_and_the_brokers_default(key: ConfigKey) -> None:
    assert key.doc.endswith(".")
    assert key.parse(key.default_text or "") == key.default
    acts = key.name.startswith("consumer.")
    assert key.status is (Status.SUPPORTED if acts else Status.LATER)
    if key.name in BROKER_SYNONYMS:
        broker_key = BROKER_KEYS[BROKER_SYNONYMS[key.name]]
        assert (broker_key.type, broker_key.default) == (key.type, key.default)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {SESSION: "45000"},
        {SESSION: "60000", HEARTBEAT: "15000", ASSIGNMENT: "0"},
        {SESSION: " 50000 "},
        {"share.session.timeout.ms": "45000", "streams.num.standby.replicas": "0"},
    ],
    ids=str,
)
def test_what_a_group_may_have(overrides: dict[str, str]) -> None:
    validate_group_configs(BrokerConfig({}), overrides)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"nonsense": "1"}, "Unknown group config name: nonsense"),
        (
            {"group.consumer.session.timeout.ms": "50000"},
            "Unknown group config name: group.consumer.session.timeout.ms",
        ),
        ({SESSION: "x"}, f"Invalid value x for configuration {SESSION}: Not a number of type INT"),
        ({SESSION: "0"}, f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
        ({SESSION: "44999"}, f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms"),
        ({SESSION: "60001"}, f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"),
        ({HEARTBEAT: "4999"}, f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms"),
        ({HEARTBEAT: "15001"}, f"{HEARTBEAT} must be less than or equal to group.consumer.max.heartbeat.interval.ms"),
        (
            {ASSIGNMENT: "15001"},
            f"{ASSIGNMENT} must be less than or equal to group.consumer.max.assignment.interval.ms",
        ),
        (
            {SESSION: "1", HEARTBEAT: "1"},
            f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms",
        ),
        (
            {"share.session.timeout.ms": "50000"},
            "Invalid value 50000 for configuration share.session.timeout.ms: "
            "this version of kwire supports only its default, '45000'",
        ),
    ],
    ids=str,
)
def test_what_it_may_not(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_group_configs(BrokerConfig({}), overrides)
    assert str(caught.value) == message


def test_the_bounds_are_the_brokers() -> None:
    """And what the group does not set counts as the broker has it."""
    broker = BrokerConfig(
        {
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.max.heartbeat.interval.ms": "60000",
        }
    )
    validate_group_configs(broker, {SESSION: "5001"})
    for overrides in ({SESSION: "5000"}, {HEARTBEAT: "45000"}, {SESSION: "1000", HEARTBEAT: "1000"}):
        with pytest.raises(ConfigError, match=f"^{SESSION} must be greater than {HEARTBEAT}$"):
            validate_group_configs(broker, overrides)


def test_rows_of_a_group() -> None:
    broker = BrokerConfig({"group.consumer.session.timeout.ms": "46000"})
    rows = {row.name: row for row in describe_group(broker, {HEARTBEAT: " 6000 "})}
    assert rows.keys() == GROUP_KEYS.keys()
    assert rows[SESSION][1:5] == ("46000", STATIC, False, False)
    assert rows[SESSION].synonyms == (
        SynonymRow("group.consumer.session.timeout.ms", "46000", STATIC),
        SynonymRow("group.consumer.session.timeout.ms", "45000", DEFAULT),
    )
    key = GROUP_KEYS[HEARTBEAT]
    own = SynonymRow(HEARTBEAT, "6000", GROUP)
    brokers = SynonymRow("group.consumer.heartbeat.interval.ms", "5000", DEFAULT)
    assert rows[HEARTBEAT] == ConfigRow(HEARTBEAT, "6000", GROUP, False, False, key.type, key.doc, (own, brokers))
    level = rows["share.isolation.level"]
    assert level.synonyms == (SynonymRow("share.isolation.level", "read_uncommitted", DEFAULT),)


def test_names_choose_rows() -> None:
    assert [row.name for row in describe_group(BrokerConfig({}), {}, [SESSION, "nonsense"])] == [SESSION]
