"""What must hold between the values of several keys, and values too particular for the table."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from kwire.config.errors import ConfigError
from kwire.config.types import invalid, parse_integer, trim

_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")
CONSUMER_GROUP_ASSIGNORS = ("uniform", "range")
"""The server-side assignors that there are. Apache Kafka takes names of Java classes besides."""

AS_A_WHOLE = -2
"""Of local retention: that of the whole log."""

_RETENTION = {
    "bytes": ("log.retention.bytes",),
    "ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
}
"""The keys of a whole log's retention."""

_CODECS = range(5)
"""Ids of codecs: none, gzip, snappy, lz4, zstd."""

_BYTES_PER_KEY = 24
"""Of the log cleaner's map of offsets."""

_MB = 1 << 20
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


def check_together(values: Mapping[str, Any]) -> None:
    """Raises ConfigError where typed values (by key, None: not set) cannot stand together."""
    _check_ids(values)
    _check_times(values)
    _check_replication(values)
    _check_connections(values)
    _check_cleaner(values)
    _check_groups(values)
    _check_consumer_groups(values)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigError(message)


def _check_ids(values: Mapping[str, Any]) -> None:
    _require(values["broker.id"] >= 0, "broker.id must be -1 (as node.id) or at least 0")
    _require(
        values["broker.id"] == values["node.id"], "broker.id and node.id must have the same value where both are set"
    )


def check_at_start(values: Mapping[str, Any]) -> None:
    """Raises ConfigError for what else no broker can start with. At run time such lags pass, as in Apache Kafka."""
    check_compaction_lag(values["log.cleaner.min.compaction.lag.ms"], values["log.cleaner.max.compaction.lag.ms"])
    if values["remote.log.storage.system.enable"]:
        check_at_run_time(values, values)


def check_at_run_time(values: Mapping[str, Any], changed: Collection[str]) -> None:
    """Raises ConfigError for what else admins must not set at run time: of the keys that are `changed`."""
    for unit, value in (("bytes", values["log.retention.bytes"]), ("ms", _retention_ms(values))):
        local = f"log.local.retention.{unit}"
        if local in changed or any(key in changed for key in _RETENTION[unit]):
            check_local_retention(local, f"log.retention.{unit}", values[local], value)


def _check_times(values: Mapping[str, Any]) -> None:
    roll = _first(values, "log.roll.ms", ("log.roll.hours", _HOUR_MS))
    _require(roll >= 1, "log.roll.ms must be greater than or equal to 1")
    jitter = _first(values, "log.roll.jitter.ms", ("log.roll.jitter.hours", _HOUR_MS))
    _require(jitter >= 0, "log.roll.jitter.ms must be greater than or equal to 0")
    _require(_retention_ms(values) != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")


def _retention_ms(values: Mapping[str, Any]) -> int:
    return _first(values, "log.retention.ms", ("log.retention.minutes", _MINUTE_MS), ("log.retention.hours", _HOUR_MS))


def _first(values: Mapping[str, Any], name: str, *others: tuple[str, int]) -> int:
    for key, factor in ((name, 1), *others):
        if values[key] is not None:
            return values[key] * factor
    raise AssertionError(f"{name} has no default")


def _check_replication(values: Mapping[str, Any]) -> None:
    wait = values["replica.fetch.wait.max.ms"]
    _require(
        wait <= values["replica.socket.timeout.ms"],
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms",
    )
    _require(
        wait <= values["replica.lag.time.max.ms"],
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms",
    )


def _check_connections(values: Mapping[str, Any]) -> None:
    queued = values["queued.max.request.bytes"]
    _require(
        queued <= 0 or queued >= values["socket.request.max.bytes"],
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    overrides = connection_overrides(values["max.connections.per.ip.overrides"])
    _require(
        values["max.connections.per.ip"] > 0 or bool(overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )


def _check_cleaner(values: Mapping[str, Any]) -> None:
    threads = values["log.cleaner.threads"]
    _require(threads > 0, "Log cleaner threads should be at least 1")
    memory = values["log.cleaner.dedupe.buffer.size"] // threads
    _require(memory > _MB, "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
    keys = memory // _BYTES_PER_KEY
    _require(
        not values["log.cleaner.enable"] or keys * values["log.cleaner.io.buffer.load.factor"] > 1,
        "offset map is too small to fit in even a single message, so log cleaning will never make progress. You can "
        "increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads",
    )


def check_compaction_lag(least: int, most: int) -> None:
    """Raises ConfigError where what must be compacted after `most` ms must not be before `least` ms."""
    _require(
        least <= most,
        f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
    )


def check_local_retention(local: str, whole: str, local_value: int, value: int) -> None:
    """Raises ConfigError where more would be kept of a tiered log here (the key `local`) than there is of it."""
    if value < 0 or local_value == AS_A_WHOLE:
        return
    if local_value == -1:
        raise invalid(local, local_value, f"Value must not be -1 as {whole} value is set as {value}.")
    if local_value > value:
        raise invalid(local, local_value, f"Value must not be more than {whole} property value: {value}")


def _check_groups(values: Mapping[str, Any]) -> None:
    _require(
        "share" not in values["group.coordinator.rebalance.protocols"],
        "group.coordinator.rebalance.protocols must be without share: this version of kwire has no share groups",
    )
    codec = values["offsets.topic.compression.codec"]
    _require(codec in _CODECS, f"Unknown compression type id: {codec}")


def _check_consumer_groups(values: Mapping[str, Any]) -> None:
    for setting in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
        name, least, most = (f"group.consumer.{bound}{setting}" for bound in ("", "min.", "max."))
        for one, other in ((most, least), (name, least)):
            _require(values[one] >= values[other], f"{one} must be greater than or equal to {other}")
        _require(values[name] <= values[most], f"{name} must be less than or equal to {most}")
        if setting == "session.timeout.ms":
            heartbeat = "group.consumer.heartbeat.interval.ms"
            _require(values[heartbeat] < values[name], f"{heartbeat} must be less than {name}")
    for assignor in values["group.consumer.assignors"]:
        _require(assignor in CONSUMER_GROUP_ASSIGNORS, f"Class {assignor} cannot be found")


def connection_overrides(text: str) -> dict[str, int]:
    """`max.connections.per.ip.overrides`: how many connections each host may have. Raises ConfigError."""
    overrides = {}
    text = text.rstrip(", ")
    pairs = [trim(part) for part in text.split(",")] if text else []
    for pair in pairs:
        host, colon, count = pair.rpartition(":")
        number = parse_integer(trim(count), 32)
        if not colon or not host or number is None:
            raise invalid("max.connections.per.ip.overrides", pair, "not in the form host:count")
        overrides[trim(host)] = number
    bad = [host for host in overrides if not _HOST.fullmatch(host)]
    _require(not bad, f"max.connections.per.ip.overrides contains invalid addresses : {','.join(bad)}")
    return overrides
