"""The settings of remote log metadata (`rlmm.config.`): those of Kafka's TopicBasedRemoteLogMetadataManager."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.definition import INT, LONG, LOW, MOOT, READ_ONLY, SHORT, SUPPORTED, ConfigKey
from kwire.config.prefixed import PrefixedConfig
from kwire.config.validity import at_least

# fmt: off
_KEYS = (
    ConfigKey("remote.log.metadata.topic.num.partitions", INT, 50, SUPPORTED, LOW, READ_ONLY, at_least(1),
        "Partitions of __remote_log_metadata."),
    ConfigKey("remote.log.metadata.topic.replication.factor", SHORT, 1, SUPPORTED, LOW, READ_ONLY, at_least(1),
        "Replication factor of __remote_log_metadata. Apache Kafka: 3."),
    ConfigKey("remote.log.metadata.topic.min.isr", SHORT, 1, SUPPORTED, LOW, READ_ONLY, at_least(1),
        "min.insync.replicas of __remote_log_metadata. Apache Kafka: 2."),
    ConfigKey("remote.log.metadata.topic.retention.ms", LONG, -1, SUPPORTED, LOW, READ_ONLY, at_least(-1),
        "How long __remote_log_metadata keeps its records: longer than any tiered topic keeps its own; -1: for ever."),
    ConfigKey("remote.log.metadata.consume.wait.ms", LONG, 120000, SUPPORTED, LOW, READ_ONLY, at_least(0),
        "How long a record of remote log metadata may take until it counts."),
    ConfigKey("remote.log.metadata.initialization.retry.max.timeout.ms", LONG, 120000, MOOT, LOW, READ_ONLY,
        at_least(0),
        "How long the start is tried again; kwire goes on trying."),
    ConfigKey("remote.log.metadata.initialization.retry.interval.ms", LONG, 100, MOOT, LOW, READ_ONLY, at_least(0),
        "Between these attempts."),
)
# fmt: on

_BY_NAME: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}
_OF_CLIENTS = tuple(f"remote.log.metadata.{what}." for what in ("common.client", "producer", "consumer", "admin"))
"""kwire keeps these records without clients of its own."""


class RemoteLogMetadataConfig(PrefixedConfig):
    """The value of every setting."""

    def __init__(self, originals: Mapping[str, str], prefix: str = "rlmm.config.") -> None:
        """Raises as `PrefixedConfig`."""
        super().__init__(originals, prefix, _BY_NAME, _OF_CLIENTS)
