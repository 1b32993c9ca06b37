"""The table of every group config of Apache Kafka 4.3.1 (KIP-848), and the broker keys that give their defaults."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    INT,
    LATER,
    MEDIUM,
    STRING,
    SUPPORTED,
    ConfigKey,
)
from kwire.config.validity import OneOf, at_least

# fmt: off
_KEYS = (
    ConfigKey("consumer.session.timeout.ms", INT, 45000, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Silence after which a member of the consumer group is removed."),
    ConfigKey("consumer.heartbeat.interval.ms", INT, 5000, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Heartbeat interval told to the members of the consumer group."),
    ConfigKey("consumer.assignment.interval.ms", INT, 1000, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Least time between two assignments of the consumer group."),
    ConfigKey("share.session.timeout.ms", INT, 45000, LATER, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Silence after which a member of the share group is removed."),
    ConfigKey("share.heartbeat.interval.ms", INT, 5000, LATER, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Heartbeat interval told to the members of the share group."),
    ConfigKey("share.assignment.interval.ms", INT, 1000, LATER, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Least time between two assignments of the share group."),
    ConfigKey("share.record.lock.duration.ms", INT, 30000, LATER, MEDIUM, CLUSTER_WIDE, at_least(1000),
        "How long a record that was acquired is locked."),
    ConfigKey("share.delivery.count.limit", INT, 5, LATER, MEDIUM, CLUSTER_WIDE, at_least(2),
        "How often a record is delivered at most."),
    ConfigKey("share.partition.max.record.locks", INT, 2000, LATER, MEDIUM, CLUSTER_WIDE, at_least(100),
        "Records of a partition that may be locked at once."),
    ConfigKey("share.renew.acknowledge.enable", BOOLEAN, True, LATER, MEDIUM, CLUSTER_WIDE, None,
        "Whether a member may keep a record locked for longer."),
    ConfigKey("share.auto.offset.reset", STRING, "latest", LATER, MEDIUM, CLUSTER_WIDE, None,
        "Where a share group begins: earliest, latest, or by_duration: and a duration."),
    ConfigKey("share.isolation.level", STRING, "read_uncommitted", LATER, MEDIUM, CLUSTER_WIDE,
        OneOf("read_committed", "read_uncommitted"),
        "Whether a share group gets records of transactions that were not committed."),
    ConfigKey("streams.session.timeout.ms", INT, 45000, LATER, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Silence after which a member of the streams group is removed."),
    ConfigKey("streams.heartbeat.interval.ms", INT, 5000, LATER, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Heartbeat interval told to the members of the streams group."),
    ConfigKey("streams.assignment.interval.ms", INT, 1000, LATER, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Least time between two assignments of the streams group."),
    ConfigKey("streams.num.standby.replicas", INT, 0, LATER, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Standby copies of each stateful task."),
    ConfigKey("streams.initial.rebalance.delay.ms", INT, 0, LATER, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Wait of a new streams group for more members before its first assignment. Apache Kafka: 3000."),
)
# fmt: on

GROUP_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}
"""By name."""

_WITHOUT_BROKER_KEY = {"share.renew.acknowledge.enable", "share.auto.offset.reset", "share.isolation.level"}

BROKER_SYNONYMS: Mapping[str, str] = {name: f"group.{name}" for name in GROUP_KEYS if name not in _WITHOUT_BROKER_KEY}
"""For each key that has a default at the broker: the broker key."""
