"""The configs of single groups: none acts yet, so that only their defaults can be set."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.broker import BrokerConfig
from kwire.config.definition import BOOLEAN, CLUSTER_WIDE, INT, LATER, MEDIUM, STRING, ConfigKey
from kwire.config.errors import ConfigError
from kwire.config.keys import BROKER_KEYS
from kwire.config.validity import OneOf

_BROKER_KEYS = tuple(
    f"group.{name}"
    for name in (
        "consumer.assignment.interval.ms",
        "consumer.heartbeat.interval.ms",
        "consumer.session.timeout.ms",
        "share.assignment.interval.ms",
        "share.delivery.count.limit",
        "share.heartbeat.interval.ms",
        "share.partition.max.record.locks",
        "share.record.lock.duration.ms",
        "share.session.timeout.ms",
        "streams.assignment.interval.ms",
        "streams.heartbeat.interval.ms",
        "streams.initial.rebalance.delay.ms",
        "streams.num.standby.replicas",
        "streams.session.timeout.ms",
    )
)


def _of_broker(key: ConfigKey) -> ConfigKey:
    doc = f"For this group, in place of the broker's {key.name}."
    return ConfigKey(key.name.removeprefix("group."), INT, key.default, LATER, MEDIUM, CLUSTER_WIDE, None, doc)


_OWN = (
    ConfigKey("share.auto.offset.reset", STRING, "latest", LATER, MEDIUM, CLUSTER_WIDE, None,
              "Where a share group begins: earliest, latest or by_duration:PnDTnHnMn.nS."),
    ConfigKey("share.isolation.level", STRING, "read_uncommitted", LATER, MEDIUM, CLUSTER_WIDE,
              OneOf("read_committed", "read_uncommitted"), "Whether a share group sees uncommitted records."),
    ConfigKey("share.renew.acknowledge.enable", BOOLEAN, True, LATER, MEDIUM, CLUSTER_WIDE, None,
              "Let consumers prolong their hold on a record."),
)  # fmt: skip

GROUP_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for key in sorted([*(_of_broker(BROKER_KEYS[name]) for name in _BROKER_KEYS), *_OWN], key=lambda key: key.name)
}
"""Every group key by its name."""


def broker_key(name: str) -> str | None:
    """The broker key that gives a group key's default."""
    return f"group.{name}" if f"group.{name}" in _BROKER_KEYS else None


def group_default(broker: BrokerConfig, name: str) -> object:
    """The typed value of a group key that is not set."""
    key = broker_key(name)
    return GROUP_KEYS[name].default if key is None else broker[key]


def validate_group_configs(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raises ConfigError (for INVALID_CONFIG) where a group must not have these configs."""
    for name, text in overrides.items():
        key = GROUP_KEYS.get(name)
        if key is None:
            raise ConfigError(f"Unknown group config name: {name}")
        if key.parse(text) != group_default(broker, name):
            raise ConfigError(f"{name}={text}: this version of kwire has no configuration for single groups")
