"""What a log dir holds at the start: which partitions, what its checkpoints say of them, how it was left."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from kwire.config.topic import LogConfig
from kwire.storage import layout
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.log_dir import LogDir
from kwire.storage.recovery import LogTask

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Survey:
    """What was found. The checkpoints are of all partitions of the dir."""

    clean: bool
    """Whether the dir was left by a clean stop."""
    stopped_ms: int
    """When it last was; 0 where that is not known."""
    partitions: list[TopicPartition] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    """Folders of partitions that were deleted, and are to be removed."""
    futures: dict[TopicPartition, str] = field(default_factory=dict)
    """Folders of logs that were on their way here."""
    promoted: set[TopicPartition] = field(default_factory=set)
    """Of the partitions, those that were future logs."""
    recovery_points: dict[TopicPartition, int] = field(default_factory=dict)
    recovery_points_ms: int = 0
    """When they were last written, by the time of their file; 0 where there is none."""
    log_start_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)
    cleaned: dict[TopicPartition, int] = field(default_factory=dict)

    def task(
        self, log_dir: LogDir, key: TopicPartition, config: LogConfig, now_ms: int, producer_expiration_ms: int
    ) -> LogTask:
        """What is to be loaded of a partition."""
        return LogTask(
            log_dir.file(layout.partition_dir_name(*key)),
            key,
            config,
            self.clean and key not in self.promoted,
            self.recovery_points.get(key, 0),
            self.log_start_offsets.get(key, 0),
            self.high_watermarks.get(key, 0),
            now_ms,
            producer_expiration_ms,
            self.cleaned.get(key, 0),
            # Where the clock was set back no file's time says anything; nor does that of a copy.
            self.stopped_ms if self.stopped_ms <= now_ms and key not in self.promoted else 0,
            self.recovery_points_ms,
        )


def survey(log_dir: LogDir, cluster_id: str, node_id: int, new_id: Callable[[], bytes]) -> Survey:
    """Looks through a locked dir, gives it its identity, and takes away the marker of its clean stop.

    For a worker thread. Raises OSError, LogDirError.
    """
    log_dir.identify(cluster_id, node_id, new_id)
    found = Survey(log_dir.take_clean_shutdown(), log_dir.stopped_ms())
    topics: dict[str, str] = {}  # one string for all partitions of a topic
    for name in log_dir.files.list(log_dir.path):
        parsed = layout.parse_partition_dir(name)
        if parsed is None or name == layout.CLUSTER_METADATA_DIR:
            continue
        if parsed.suffix == layout.DELETE_DIR:
            found.deleted.append(name)
        elif parsed.suffix == layout.FUTURE_DIR and parsed[:2] not in found.futures:
            found.futures[parsed[:2]] = name
        elif parsed.suffix:
            logger.warning("leaving %s alone: it belongs to no partition", log_dir.file(name))
        else:
            found.partitions.append((topics.setdefault(parsed.topic, parsed.topic), parsed.partition))
    if found.partitions or found.futures:
        known = {f"{key[0]} {key[1]}": key for key in found.partitions}
        found.recovery_points = log_dir.read_checkpoint(layout.RECOVERY_POINTS, known)
        found.recovery_points_ms = log_dir.written_ms(layout.RECOVERY_POINTS)
        found.log_start_offsets = log_dir.read_checkpoint(layout.LOG_START_OFFSETS, known)
        found.high_watermarks = log_dir.read_high_watermarks(known)
        found.cleaned = log_dir.read_checkpoint(layout.CLEANER_OFFSETS, known)
    return found
