"""What must hold of a topic's configs where remote storage comes into it (KIP-405, KIP-950)."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.broker import BrokerConfig
from kwire.config.checks import AS_A_WHOLE, check_local_retention
from kwire.config.errors import ConfigError
from kwire.config.topic import LogConfig


def check_tiered(broker: BrokerConfig, current: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raises ConfigError where a topic must not have the configs `wanted`, having `current` (nothing where it is new).

    Both are valid each for itself. The messages are Apache Kafka's.
    """
    config = LogConfig.of(broker, wanted)
    if not config.remote_storage_enable:
        if LogConfig.of(broker, current).remote_storage_enable and not config.remote_log_delete_on_disable:
            raise ConfigError(
                "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote "
                "data and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. If "
                "you want to disable remote storage and delete all remote data, please set "
                "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
            )
        return
    if not broker["remote.log.storage.system.enable"]:
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
            "storage."
        )
    if config.compacted:
        raise ConfigError(
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being an empty list."
        )
    retentions = (
        ("local.retention.bytes", "retention.bytes", config.local_retention_bytes, config.retention_bytes),
        ("local.retention.ms", "retention.ms", config.local_retention_ms, config.retention_ms),
    )
    for local, whole, local_value, value in retentions:
        check_local_retention(local, whole, local_value, value)
    if config.remote_log_copy_disable:
        for local, whole, local_value, value in retentions:
            if local_value not in (AS_A_WHOLE, value):
                raise ConfigError(
                    f"When `remote.log.copy.disable` is set to true, the `{local}` and `{whole}` must be set to the "
                    "identical value because there will be no more logs copied to the remote storage."
                )
