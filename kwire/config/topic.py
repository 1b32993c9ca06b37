"""What a topic's log goes by: the broker's defaults with the topic's own configs over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from kwire.config.broker import BrokerConfig
from kwire.config.checks import check_compaction_lag
from kwire.config.errors import ConfigError
from kwire.config.topic_keys import SYNONYMS, TOPIC_KEYS


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The topic configs, typed, each named after its key. Times are ms, -1 stands for no limit, as in Kafka."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = 2**63 - 1
    flush_ms: int = 2**63 - 1
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = 2**63 - 1
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = 2**63 - 1
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False

    # What follows from them, worked out once: each append asks for it.

    compacted: bool = field(init=False, repr=False, compare=False)
    roll_ms: int = field(init=False, repr=False, compare=False)
    """For how long a segment takes records: a compacted one must be sealed to be cleaned."""

    def __post_init__(self) -> None:
        compacted = "compact" in self.cleanup_policy
        object.__setattr__(self, "compacted", compacted)
        roll_ms = min(self.segment_ms, self.max_compaction_lag_ms) if compacted else self.segment_ms
        object.__setattr__(self, "roll_ms", roll_ms)

    @classmethod
    def of(cls, broker: BrokerConfig, overrides: Mapping[str, str]) -> LogConfig:
        """The configuration of a topic with these overrides, which were validated when they were set."""
        defaults = _defaults(broker)
        if not overrides:
            return defaults
        values = {name: getattr(defaults, name) for name in _FIELDS.values()}
        for name, text in overrides.items():
            if name in _FIELDS:
                values[_FIELDS[name]] = _field_value(name, TOPIC_KEYS[name].parse(text))
        internal = overrides.get("internal.segment.bytes")
        if internal is not None:
            values["segment_bytes"] = TOPIC_KEYS["internal.segment.bytes"].parse(internal)
        return cls(**values)

    @property
    def deleted(self) -> bool:
        """Whether old segments are deleted by age and size."""
        return "delete" in self.cleanup_policy


_FIELDS = {each.name.replace("_", "."): each.name for each in fields(LogConfig) if each.init}


def _field_value(name: str, value: Any) -> Any:
    return frozenset(value) if name == "cleanup.policy" else value


@lru_cache(maxsize=8)
def _defaults(broker: BrokerConfig) -> LogConfig:
    values = {}
    for name, attribute in _FIELDS.items():
        value = broker_default(broker, name)
        if value is not None:
            values[attribute] = _field_value(name, value)
    return LogConfig(**values)


def broker_default(broker: BrokerConfig, name: str) -> Any:
    """The typed value of a topic key that sets nothing itself; None for a key without a default at the broker."""
    for synonym in SYNONYMS.get(name, ()):
        value = broker[synonym.broker_key]
        if value is not None:
            if synonym.factor != 1:
                value = value * synonym.factor
            if name == "retention.ms" and value < 0:
                value = -1
            return value
    return None


def validate_topic_configs(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raises ConfigError (for INVALID_CONFIG) where a topic of this broker must not have these configs.

    Configs of features that do not exist yet are refused.
    """
    for name in overrides:
        if name not in TOPIC_KEYS:
            raise ConfigError(f"Unknown topic config name: {name}")
    values = {name: TOPIC_KEYS[name].parse(text) for name, text in overrides.items()}
    for name, value in values.items():
        TOPIC_KEYS[name].check_supported(value)
    config = LogConfig.of(broker, overrides)
    check_compaction_lag(config.min_compaction_lag_ms, config.max_compaction_lag_ms)
