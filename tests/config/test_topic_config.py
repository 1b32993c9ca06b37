"""Topic configs: the broker's defaults, overrides, what a topic must not have."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from kwire.config.broker import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.config.topic import LogConfig, validate_topic_configs
from kwire.config.topic_keys import TOPIC_KEYS

HOUR = 3_600_000


def test_the_defaults_are_those_of_a_broker_without_configuration() -> None:
    assert LogConfig.of(BrokerConfig({}), {}) == LogConfig()
    for name, key in TOPIC_KEYS.items():
        if name not in ("internal.segment.bytes", "cleanup.policy"):
            assert getattr(LogConfig(), name.replace(".", "_")) == key.default


def test_defaults_come_from_the_broker_in_its_units() -> None:
    broker = BrokerConfig(
        {
            "log.retention.minutes": "2",
            "log.roll.hours": "3",
            "log.roll.jitter.hours": "1",
            "log.flush.scheduler.interval.ms": "77",
            "message.max.bytes": "5",
            "log.cleanup.policy": "compact,delete",
            "log.index.size.max.bytes": "4",
        }
    )
    config = LogConfig.of(broker, {})
    assert config.retention_ms == 120_000
    assert config.segment_ms == 3 * HOUR
    assert config.segment_jitter_ms == HOUR
    assert config.flush_ms == 77
    assert config.max_message_bytes == 5
    assert config.cleanup_policy == {"compact", "delete"}
    assert config.compacted
    assert config.deleted
    assert config.segment_index_bytes == 4


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"log.retention.hours": "1"}, HOUR),
        ({"log.retention.hours": "1", "log.retention.minutes": "1"}, 60_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "1", "log.retention.ms": "1"}, 1),
        ({"log.retention.ms": "-5"}, -1),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_of_retention_counts(settings: dict[str, str], expected: int) -> None:
    assert LogConfig.of(BrokerConfig(settings), {}).retention_ms == expected


def test_a_topics_own_configs_stand_over_the_brokers() -> None:
    broker = BrokerConfig({"log.retention.hours": "1", "min.insync.replicas": "2"})
    config = LogConfig.of(broker, {"retention.ms": "9", "cleanup.policy": "compact", "preallocate": "true"})
    assert (config.retention_ms, config.min_insync_replicas, config.preallocate) == (9, 2, True)
    assert config.cleanup_policy == {"compact"}
    assert not config.deleted


def test_dynamic_defaults_reach_topics() -> None:
    broker = BrokerConfig({"log.retention.hours": "1"}).with_dynamic({}, {"log.retention.ms": "7"})
    assert LogConfig.of(broker, {}).retention_ms == 7


def test_internal_segment_bytes_stand_for_segment_bytes() -> None:
    config = LogConfig.of(BrokerConfig({}), {"internal.segment.bytes": "100", "segment.bytes": "2000000"})
    assert config.segment_bytes == 100


def test_configs_of_a_newer_version_are_passed_over() -> None:
    assert LogConfig.of(BrokerConfig({}), {"no.such.thing": "x"}) == LogConfig()


def test_a_log_config_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        LogConfig().segment_bytes = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"foo": "bar"}, "Unknown topic config name: foo"),
        ({"segment.bytes": "1000000000", "foo": "bar"}, "Unknown topic config name: foo"),
        ({"retention.ms": ""}, "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        (
            {"min.compaction.lag.ms": "101", "max.compaction.lag.ms": "100"},
            "conflict topic config setting min.compaction.lag.ms (101) > max.compaction.lag.ms (100)",
        ),
        (
            {"leader.replication.throttled.replicas": "*"},
            "Invalid value [*] for configuration leader.replication.throttled.replicas: "
            "this version of kwire supports only its default, ''",
        ),
    ],
)
def test_what_a_topic_must_not_have(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        validate_topic_configs(BrokerConfig({}), overrides)
    assert str(error.value) == message


def test_what_a_topic_may_have() -> None:
    broker = BrokerConfig({})
    validate_topic_configs(broker, {})
    validate_topic_configs(
        broker, {name: key.default_text for name, key in TOPIC_KEYS.items() if key.default_text is not None}
    )
    validate_topic_configs(broker, {"cleanup.policy": "compact", "max.message.bytes": "1000"})
    validate_topic_configs(broker, {"cleanup.policy": ""})
    validate_topic_configs(broker, {"retention.ms": " 500 ", "internal.segment.bytes": "14"})
    validate_topic_configs(broker, {"leader.replication.throttled.replicas": ",", "retention.ms": "\uff15"})


def test_the_brokers_lags_count_beside_those_of_a_topic() -> None:
    for dynamic in False, True:
        least = {"log.cleaner.min.compaction.lag.ms": "3600000"}
        broker = BrokerConfig({}).with_dynamic(least) if dynamic else BrokerConfig(least)
        validate_topic_configs(broker, {"max.compaction.lag.ms": "3600000"})
        validate_topic_configs(broker, {"max.compaction.lag.ms": "60000", "min.compaction.lag.ms": "0"})
        with pytest.raises(ConfigError) as error:
            validate_topic_configs(broker, {"max.compaction.lag.ms": "60000"})
        assert str(error.value) == (
            "conflict topic config setting min.compaction.lag.ms (3600000) > max.compaction.lag.ms (60000)"
        )
