"""How files and folders are named, as in Apache Kafka.

<log dir>/
    .lock  meta.properties  .kafka_cleanshutdown
    kwire-last-cleanshutdown                         that of the last clean stop, set aside by the broker that runs
    recovery-point-offset-checkpoint  replication-offset-checkpoint  log-start-offset-checkpoint
    cleaner-offset-checkpoint
    kwire-object-stores                              directories that were written to as object stores, in the first one
    orders-0/                                        topic "orders", partition 0
        partition.metadata  leader-epoch-checkpoint
        00000000000000000000.log .index .timeindex   the segment that begins at offset 0
        00000000000000004711.log .index .timeindex .txnindex .snapshot
        00000000000000000000.log.deleted             waits for file.delete.delay.ms, as does .log.7.deleted
        00000000000000000000.log.cleaned, .swap      while the log is compacted
    orders-1.0123456789abcdef0123456789abcdef-delete/   a deleted partition, likewise
    orders-2.0123456789abcdef0123456789abcdef-stray/    a partition nobody knows any more
    orders-3.0123456789abcdef0123456789abcdef-future/   the copy of a log that moves here from another log dir
"""

from __future__ import annotations

from typing import NamedTuple

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
INDEX_SUFFIXES = (OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

DELETE_DIR = "-delete"
STRAY_DIR = "-stray"
FUTURE_DIR = "-future"

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"

LOCK = ".lock"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LAST_CLEAN_SHUTDOWN = "kwire-last-cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
OFFSET_CHECKPOINTS = (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)
"""Those that have an offset for each partition."""
OBJECT_STORES = "kwire-object-stores"
UNFINISHED_IMPORT = "kwire-import.unfinished"
"""In a dir that is being filled from another broker's: nobody may serve it."""
MOVED_BY_IMPORT = "kwire-import.moved"
"""In a dir of another broker, from which partitions were moved."""

KRAFT_SNAPSHOT = ".checkpoint"
CLUSTER_METADATA_DIR = "__cluster_metadata-0"
"""A KRaft controller's own log: no partition of ours, and left alone."""

_MAX_NAME = 255
_ID_DIGITS = 32
_OFFSET_DIGITS = 20


class PartitionDir(NamedTuple):
    """What the name of a partition's folder says."""

    topic: str
    partition: int
    suffix: str
    """"" for a live one, else `DELETE_DIR`, `STRAY_DIR` or `FUTURE_DIR`."""


def segment_name(base_offset: int, suffix: str) -> str:
    """The name of a segment's file, such as `00000000000000000042.log`."""
    return f"{base_offset:0{_OFFSET_DIGITS}d}{suffix}"


def parse_segment_name(name: str) -> tuple[int, str] | None:
    """(offset, rest of the name from its first dot), or None where the name does not begin with 20 digits."""
    digits, dot, rest = name.partition(".")
    if not dot or len(digits) != _OFFSET_DIGITS or not digits.isascii() or not digits.isdigit():
        return None
    return int(digits), "." + rest


def deleted_again(path: str, number: int) -> str:
    """Another name for a file that waits for its removal, where the first is taken: `….log.7.deleted`."""
    return f"{path}.{number}{DELETED}"


def live_name(name: str) -> str:
    """The name that a file of a segment has, or had, when it is in use: without `.deleted`, `.cleaned` or `.swap`."""
    if name.endswith(DELETED):
        name = name.removesuffix(DELETED)
        stem, dot, number = name.rpartition(".")
        name = stem if dot and number.isdigit() else name
    return name.removesuffix(CLEANED).removesuffix(SWAP)


def parse_kraft_snapshot(name: str) -> tuple[int, int] | None:
    """(end offset, epoch) of a snapshot of a KRaft controller, such as `00000000000000000042-0000000007.checkpoint`."""
    stem = name.removesuffix(KRAFT_SNAPSHOT)
    offset, dash, epoch = stem.partition("-")
    if stem == name or not dash or not (offset + epoch).isascii() or not offset.isdigit() or not epoch.isdigit():
        return None
    return int(offset), int(epoch)


def partition_dir_name(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def renamed_dir_name(topic: str, partition: int, unique: bytes, suffix: str) -> str:
    """The name a partition's folder takes before it is deleted or set aside. `unique`: 16 random bytes."""
    ending = f"-{partition}.{unique.hex()}{suffix}"
    return topic[: _MAX_NAME - len(ending)] + ending


def future_dir_name(topic: str, partition: int, unique: bytes) -> str:
    """The name of a future log's folder. `unique`: 16 random bytes."""
    return f"{topic}-{partition}.{unique.hex()}{FUTURE_DIR}"


def left_behind_name(future: str) -> str:
    """The name that the folder of a log takes when the future log of this name takes its place: with the same id, which
    tells it from those of other moves."""
    return future.removesuffix(FUTURE_DIR) + DELETE_DIR


def can_have_future(topic: str, partition: int) -> bool:
    """Whether the name of the future log's folder is not too long: other than a deleted one's it must not be cut."""
    return len(future_dir_name(topic, partition, bytes(_ID_DIGITS // 2))) <= _MAX_NAME


def parse_partition_dir(name: str) -> PartitionDir | None:
    """None where the name is not that of a partition's folder (live, deleted, stray or future)."""
    suffix = ""
    for candidate in (DELETE_DIR, STRAY_DIR, FUTURE_DIR):
        if name.endswith(candidate):
            name, dot, unique = name[: -len(candidate)].rpartition(".")
            if not dot or len(unique) != _ID_DIGITS:
                return None
            suffix = candidate
            break
    topic, dash, partition = name.rpartition("-")
    if not dash or not topic or not partition.isascii() or not partition.isdigit():
        return None
    return PartitionDir(topic, int(partition), suffix)
