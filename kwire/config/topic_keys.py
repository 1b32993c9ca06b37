"""The table of every topic config of Apache Kafka 4.3.1, and the broker keys that give their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kwire.config.definition import (
    BOOLEAN,
    CLUSTER_WIDE,
    DOUBLE,
    INT,
    LATER,
    LIST,
    LONG,
    MAX_LONG,
    MEDIUM,
    STRING,
    SUPPORTED,
    ConfigKey,
)
from kwire.config.validity import ListOf, OneOf, RangeOr, ThrottledReplicas, at_least, between

# fmt: off
_KEYS = (
    ConfigKey("cleanup.policy", LIST, ("delete",), SUPPORTED, MEDIUM, CLUSTER_WIDE, ListOf("compact", "delete"),
        "What happens to old segments: delete, compact, both, or neither."),
    ConfigKey("compression.gzip.level", INT, -1, SUPPORTED, MEDIUM, CLUSTER_WIDE, RangeOr(1, 9, -1),
        "Level for recompression with gzip; -1 is the library's default."),
    ConfigKey("compression.lz4.level", INT, 9, SUPPORTED, MEDIUM, CLUSTER_WIDE, between(1, 17),
        "Level for recompression with lz4."),
    ConfigKey("compression.type", STRING, "producer", SUPPORTED, MEDIUM, CLUSTER_WIDE,
        OneOf("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "Codec that the topic stores with; `producer` keeps what the producer chose."),
    ConfigKey("compression.zstd.level", INT, 3, SUPPORTED, MEDIUM, CLUSTER_WIDE, between(-131072, 22),
        "Level for recompression with zstd."),
    ConfigKey("delete.retention.ms", LONG, 86400000, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "How long a compacted topic keeps the marker of a deleted key."),
    ConfigKey("file.delete.delay.ms", LONG, 60000, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "How long a deleted segment's files stay, renamed, before they are removed."),
    ConfigKey("flush.messages", LONG, MAX_LONG, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Records after which the log is flushed to disk."),
    ConfigKey("flush.ms", LONG, MAX_LONG, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Time after which the log is flushed to disk."),
    ConfigKey("follower.replication.throttled.replicas", LIST, (), LATER, MEDIUM, CLUSTER_WIDE, ThrottledReplicas(),
        "Replicas whose fetching is throttled, as partition:broker pairs; * for all."),
    ConfigKey("index.interval.bytes", INT, 4096, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Bytes of log between two entries of the offset index."),
    ConfigKey("internal.segment.bytes", INT, None, SUPPORTED, MEDIUM, CLUSTER_WIDE, None,
        "Takes the place of segment.bytes, without its lower bound: for tests.", internal=True),
    ConfigKey("leader.replication.throttled.replicas", LIST, (), LATER, MEDIUM, CLUSTER_WIDE, ThrottledReplicas(),
        "Replicas whose leaders throttle what they send, as partition:broker pairs; * for all."),
    ConfigKey("local.retention.bytes", LONG, -2, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(-2),
        "Size kept on local disk with remote storage; -2: retention.bytes."),
    ConfigKey("local.retention.ms", LONG, -2, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(-2),
        "Age kept on local disk with remote storage; -2: retention.ms."),
    ConfigKey("max.compaction.lag.ms", LONG, MAX_LONG, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Age at which a record must become subject to compaction."),
    ConfigKey("max.message.bytes", INT, 1048588, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Largest record batch (after compression) the topic takes."),
    ConfigKey("message.timestamp.after.max.ms", LONG, 3600000, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "How far a record's timestamp may lie after the broker's time."),
    ConfigKey("message.timestamp.before.max.ms", LONG, MAX_LONG, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "How far a record's timestamp may lie before the broker's time."),
    ConfigKey("message.timestamp.type", STRING, "CreateTime", SUPPORTED, MEDIUM, CLUSTER_WIDE,
        OneOf("CreateTime", "LogAppendTime"),
        "Whose time a record bears: CreateTime (the producer's) or LogAppendTime (the broker's)."),
    ConfigKey("min.cleanable.dirty.ratio", DOUBLE, 0.5, SUPPORTED, MEDIUM, CLUSTER_WIDE, between(0, 1),
        "Share of the log that must be uncleaned before it is compacted."),
    ConfigKey("min.compaction.lag.ms", LONG, 0, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Age a record must have before it may be compacted away."),
    ConfigKey("min.insync.replicas", INT, 1, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Replicas that must be in sync before acks=all is served."),
    ConfigKey("preallocate", BOOLEAN, False, SUPPORTED, MEDIUM, CLUSTER_WIDE, None,
        "Reserve the disk space of a segment when it begins."),
    ConfigKey("remote.log.copy.disable", BOOLEAN, False, SUPPORTED, MEDIUM, CLUSTER_WIDE, None,
        "Copy no more segments to remote storage."),
    ConfigKey("remote.log.delete.on.disable", BOOLEAN, False, SUPPORTED, MEDIUM, CLUSTER_WIDE, None,
        "Delete what is in remote storage when that is turned off."),
    ConfigKey("remote.storage.enable", BOOLEAN, False, SUPPORTED, MEDIUM, CLUSTER_WIDE, None,
        "Keep the topic's older segments in remote storage."),
    ConfigKey("retention.bytes", LONG, -1, SUPPORTED, MEDIUM, CLUSTER_WIDE, None,
        "Size of a partition above which its oldest segments are deleted; -1: unlimited."),
    ConfigKey("retention.ms", LONG, 604800000, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(-1),
        "Age after which segments are deleted; -1: never."),
    ConfigKey("segment.bytes", INT, 1073741824, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(1048576),
        "Size at which the log begins a new segment."),
    ConfigKey("segment.index.bytes", INT, 10485760, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(4),
        "Largest size of an index file."),
    ConfigKey("segment.jitter.ms", LONG, 0, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(0),
        "Most that is taken off segment.ms at random."),
    ConfigKey("segment.ms", LONG, 604800000, SUPPORTED, MEDIUM, CLUSTER_WIDE, at_least(1),
        "Age at which the log begins a new segment."),
    ConfigKey("unclean.leader.election.enable", BOOLEAN, False, LATER, MEDIUM, CLUSTER_WIDE, None,
        "Let a replica outside the ISR lead when no other is left, at the price of lost records."),
)
# fmt: on

TOPIC_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}
"""Every topic key by its name."""


class Synonym(NamedTuple):
    """A broker key that gives a topic key's default; its number times `factor` is the topic's (hours to ms)."""

    broker_key: str
    factor: int = 1


_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS

SYNONYMS: Mapping[str, tuple[Synonym, ...]] = {
    "cleanup.policy": (Synonym("log.cleanup.policy"),),
    "compression.gzip.level": (Synonym("compression.gzip.level"),),
    "compression.lz4.level": (Synonym("compression.lz4.level"),),
    "compression.type": (Synonym("compression.type"),),
    "compression.zstd.level": (Synonym("compression.zstd.level"),),
    "delete.retention.ms": (Synonym("log.cleaner.delete.retention.ms"),),
    "file.delete.delay.ms": (Synonym("log.segment.delete.delay.ms"),),
    "flush.messages": (Synonym("log.flush.interval.messages"),),
    "flush.ms": (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
    "index.interval.bytes": (Synonym("log.index.interval.bytes"),),
    "local.retention.bytes": (Synonym("log.local.retention.bytes"),),
    "local.retention.ms": (Synonym("log.local.retention.ms"),),
    "max.compaction.lag.ms": (Synonym("log.cleaner.max.compaction.lag.ms"),),
    "max.message.bytes": (Synonym("message.max.bytes"),),
    "message.timestamp.after.max.ms": (Synonym("log.message.timestamp.after.max.ms"),),
    "message.timestamp.before.max.ms": (Synonym("log.message.timestamp.before.max.ms"),),
    "message.timestamp.type": (Synonym("log.message.timestamp.type"),),
    "min.cleanable.dirty.ratio": (Synonym("log.cleaner.min.cleanable.ratio"),),
    "min.compaction.lag.ms": (Synonym("log.cleaner.min.compaction.lag.ms"),),
    "min.insync.replicas": (Synonym("min.insync.replicas"),),
    "preallocate": (Synonym("log.preallocate"),),
    "retention.bytes": (Synonym("log.retention.bytes"),),
    "retention.ms": (
        Synonym("log.retention.ms"),
        Synonym("log.retention.minutes", _MINUTE_MS),
        Synonym("log.retention.hours", _HOUR_MS),
    ),
    "segment.bytes": (Synonym("log.segment.bytes"),),
    "segment.index.bytes": (Synonym("log.index.size.max.bytes"),),
    "segment.jitter.ms": (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS)),
    "unclean.leader.election.enable": (Synonym("unclean.leader.election.enable"),),
}
"""For each topic key that has a default at the broker: the broker keys, the first that is set counts."""

SAME_SETTING: Mapping[str, tuple[str, ...]] = {
    synonym.broker_key: tuple(other.broker_key for other in group)
    for group in SYNONYMS.values()
    if len(group) > 1
    for synonym in group
    if synonym.broker_key != "log.flush.scheduler.interval.ms"
}
"""Broker keys that say the same in other units, with all of these, in order of precedence."""
