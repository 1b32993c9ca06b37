"""Which configs a group may have: valid values, within the broker's bounds, that go together."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.broker import BrokerConfig
from kwire.config.errors import ConfigError
from kwire.config.group_keys import GROUP_KEYS

_BOUNDED = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
"""Of the consumer protocol, in the order in which Apache Kafka checks them."""


def validate_group_configs(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raises ConfigError (for INVALID_CONFIG) where a group must not have these configs.

    Configs of features that do not exist yet are refused.
    """
    for name in overrides:
        if name not in GROUP_KEYS:
            raise ConfigError(f"Unknown group config name: {name}")
    values = {name: GROUP_KEYS[name].parse(text) for name, text in overrides.items()}
    for name, value in values.items():
        GROUP_KEYS[name].check_supported(value)
    effective = {}
    for setting in _BOUNDED:
        name = f"consumer.{setting}"
        least, greatest = f"group.consumer.min.{setting}", f"group.consumer.max.{setting}"
        value = effective[name] = values.get(name, broker[f"group.{name}"])
        if value < broker[least]:
            raise ConfigError(f"{name} must be greater than or equal to {least}")
        if value > broker[greatest]:
            raise ConfigError(f"{name} must be less than or equal to {greatest}")
    if effective["consumer.session.timeout.ms"] <= effective["consumer.heartbeat.interval.ms"]:
        raise ConfigError("consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms")
