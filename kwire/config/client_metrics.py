"""The configs of client metrics subscriptions (KIP-714)."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.definition import CLUSTER_WIDE, INT, LIST, MEDIUM, SUPPORTED, ConfigKey
from kwire.config.errors import ConfigError, InvalidRequest

CLIENT_METRICS_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for key in (
        ConfigKey("interval.ms", INT, 300_000, SUPPORTED, MEDIUM, CLUSTER_WIDE, None, "How often clients push."),
        ConfigKey("match", LIST, (), SUPPORTED, MEDIUM, CLUSTER_WIDE, None, "Which clients: pairs of label=pattern."),
        ConfigKey("metrics", LIST, (), SUPPORTED, MEDIUM, CLUSTER_WIDE, None, "Which metrics, by prefix; * for all."),
    )
}
"""Every key of a subscription by its name."""

_LABELS = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def validate_client_metrics(overrides: Mapping[str, str]) -> None:
    """Raises InvalidRequest or ConfigError where a subscription must not have these configs."""
    import re

    for name in overrides:
        if name not in CLIENT_METRICS_KEYS:
            raise InvalidRequest(f"Unknown client metrics configuration: {name}")
    if "interval.ms" in overrides:
        interval = CLIENT_METRICS_KEYS["interval.ms"].parse(overrides["interval.ms"])
        if not 100 <= interval <= 3_600_000:
            raise InvalidRequest(
                f"Invalid value {interval} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
            )
    for pair in CLIENT_METRICS_KEYS["match"].parse(overrides.get("match", "")):
        label, equals, pattern = (part.strip() for part in pair.partition("="))
        if not equals or label not in _LABELS:
            raise ConfigError(f"Illegal client matching pattern: {pair}")
        try:
            re.compile(pattern)
        except re.error:
            raise ConfigError(f"Illegal client matching pattern: {pair}") from None
