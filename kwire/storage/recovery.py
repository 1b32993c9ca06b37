"""Loading a log from its folder: after a clean stop by names and a few index entries, otherwise by reading it again.

After an unclean stop every segment from the recovery point on is gone through batch by batch. At the first batch that
is torn, corrupt or out of order the log is cut off, and what lies behind it is removed. On the way the indexes, the
aborted transactions, the leader epochs and the producer state are built anew.

All of this runs in a worker thread, for a log that nobody else has yet. It raises OSError.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from kwire.config.topic import LogConfig
from kwire.ports.files import FileSystem
from kwire.protocol import uuids
from kwire.protocol.records.errors import CorruptBatchError
from kwire.storage import checkpoints, layout
from kwire.storage.checkpoints import CorruptCheckpoint, TopicPartition
from kwire.storage.damage import readable
from kwire.storage.leader_epochs import LeaderEpochCache
from kwire.storage.open_files import OpenFiles
from kwire.storage.producer_replay import replay
from kwire.storage.producer_state import ProducerStateManager
from kwire.storage.segment import Segment
from kwire.storage.segment_recovery import SegmentRecovery, take_epoch
from kwire.storage.segments import Segments
from kwire.storage.services import DEFAULT_PRODUCER_EXPIRATION_MS
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.swaps import finish_swaps

logger = logging.getLogger(__name__)

_EVERYTHING = 2**63 - 1
"""An offset behind all others."""


@dataclass(frozen=True, slots=True)
class LogTask:
    """What is to be loaded, and what the log dir's checkpoints say of it (0 where they say nothing)."""

    dir: str
    key: TopicPartition
    config: LogConfig
    clean: bool
    """Whether the broker had stopped cleanly."""
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    now_ms: int = 0
    producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS
    cleaned: int = 0
    """Up to here (exclusive) the log was compacted, which it need not be any more."""
    stopped_ms: int = 0
    """Where the broker had not stopped cleanly: when it did so before that; 0 where that is not known."""
    recovery_point_ms: int = 0
    """When the recovery point was written; 0 where that is not known."""

    @property
    def flushed(self) -> int:
        """Up to here (exclusive) everything was on the disk once."""
        return _EVERYTHING if self.clean else self.recovery_point


@dataclass(slots=True)
class LoadedLog:
    """What was found; `kwire.storage.log.Log` takes it over."""

    segments: Segments
    epochs: LeaderEpochCache
    producer_state: ProducerStateManager
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    high_watermark: int
    topic_id: bytes | None
    """None where partition.metadata is missing or cannot be read."""
    changed: bool
    """Whether files were made or repaired, of which the disk may know nothing yet."""


def load(files: FileSystem, open_files: OpenFiles, task: LogTask) -> LoadedLog:
    """Loads the log of a folder that exists. `open_files` is what the log's segments will be counted in."""
    return _Loader(files, open_files, task).load()


@lru_cache(maxsize=256)
def _topic_id(data: bytes) -> bytes | None:
    """What a partition.metadata says: one object for all partitions of a topic."""
    with suppress(CorruptCheckpoint, ValueError):
        return uuids.from_text(checkpoints.decode_partition_metadata(data))
    return None


class _Loader:
    """One load."""

    def __init__(self, files: FileSystem, open_files: OpenFiles, task: LogTask) -> None:
        self._files = files
        self._task = task
        self._shared = open_files
        self._own = OpenFiles(8)  # not the shared one: this is another thread
        self._segments = Segments()
        names = finish_swaps(files, task.dir, files.list(task.dir))
        self._names = set(names)
        self._producers = ProducerStateManager(files, task.dir, task.producer_expiration_ms, names)
        self._epochs = LeaderEpochCache()
        self._changed = False
        self._rewritten = _EVERYTHING
        """In the first segment that was gone through, where others follow it: its indexes are to be flushed."""

    def load(self) -> LoadedLog:
        task = self._task
        self._epochs = self._load_epochs()
        self._find_segments()
        if len(self._segments) and self._lacks_epochs():
            self._rebuild_epochs()
        self._producers.remove_stray_snapshots([segment.base_offset for segment in self._segments])
        wrong = self._wrongly_indexed()
        untouched = task.clean or self._is_untouched()
        if untouched and wrong == _EVERYTHING:
            end_offset = self._check()
        else:
            end_offset = self._recover_from(wrong if untouched else min(task.recovery_point, wrong))
        if end_offset < task.log_start_offset:
            logger.warning("%s ends before its log start offset %d: starting it anew", task.dir, task.log_start_offset)
            self._remove(list(self._segments))
            self._epochs.clear()
        if not len(self._segments):
            end_offset = task.log_start_offset
            self._segments.add(self._create(end_offset))
        active = self._segments.active
        log_start_offset = task.log_start_offset
        if not task.config.remote_storage_enable:  # else what comes before the first segment may be in remote storage
            log_start_offset = max(log_start_offset, self._segments.first.base_offset)
        self._epochs.truncate_from_end(end_offset)
        self._epochs.truncate_from_start(task.log_start_offset)
        if self._changed or self._producers.snapshots:
            replay(self._producers, self._segments, log_start_offset, end_offset, task.now_ms)
        else:  # a clean stop that leaves no snapshot says that there are no producers, here as with Apache Kafka
            self._producers.end_offset = end_offset
        for segment in self._segments:
            segment.drop_open()
            segment.open_files = self._shared
        active.begin_appends(end_offset)
        return LoadedLog(
            self._segments,
            self._epochs,
            self._producers,
            log_start_offset,
            end_offset,
            min(end_offset if task.clean else task.recovery_point, end_offset, self._rewritten),
            min(max(task.high_watermark, log_start_offset), end_offset),
            self._load_topic_id(),
            self._changed,
        )

    # What lies in the folder

    def _load_epochs(self) -> LeaderEpochCache:
        if layout.LEADER_EPOCHS in self._names:
            try:
                entries = checkpoints.decode_epochs(self._files.read(f"{self._task.dir}/{layout.LEADER_EPOCHS}"))
                return LeaderEpochCache(entries)
            except (CorruptCheckpoint, ValueError) as error:
                logger.warning("ignoring %s in %s: %s", layout.LEADER_EPOCHS, self._task.dir, error)
        return LeaderEpochCache()

    def _lacks_epochs(self) -> bool:
        """Whether the file tells nothing; or, after a crash that undid a deletion, nothing of the first segments."""
        earliest = self._epochs.earliest
        start = max(self._segments.first.base_offset, self._task.log_start_offset)
        return earliest is None or (not self._task.clean and earliest[1] > start)

    def _rebuild_epochs(self) -> None:
        """Where nothing tells of the leader epochs, the headers of the batches that recovery does not read do."""
        recovered = [] if self._task.clean else self._segments.from_offset(self._task.recovery_point)[:1]
        end = recovered[0].base_offset if recovered else self._segments.active.base_offset + 1
        if self._epochs.earliest is not None:
            end = min(end, self._epochs.earliest[1])
        found = LeaderEpochCache()
        for segment in self._segments:
            if segment.size and segment.base_offset < end:
                for _, header in readable(segment.file, 0, segment.size, segment.base_offset):
                    take_epoch(found, header)
        self._epochs.begin_with(found.entries())

    def _load_topic_id(self) -> bytes | None:
        if layout.PARTITION_METADATA in self._names:
            return _topic_id(self._files.read(f"{self._task.dir}/{layout.PARTITION_METADATA}"))
        return None

    def _find_segments(self) -> None:
        found: dict[int, set[str]] = {}
        for name in self._names:
            parsed = layout.parse_segment_name(name)
            if parsed is not None:
                found.setdefault(parsed[0], set()).add(parsed[1])
        for base_offset in sorted(found):
            suffixes = found[base_offset]
            if layout.LOG in suffixes:
                self._segments.add(self._open(base_offset, suffixes))
                continue
            for suffix in sorted(suffixes.intersection(layout.INDEX_SUFFIXES)):
                logger.warning("removing %020d%s in %s: it has no segment", base_offset, suffix, self._task.dir)
                self._files.remove(f"{self._task.dir}/{layout.segment_name(base_offset, suffix)}")

    def _open(self, base_offset: int, suffixes: set[str]) -> Segment:
        path = f"{self._task.dir}/{layout.segment_name(base_offset, layout.LOG)}"
        return Segment(
            self._files,
            self._own,
            self._task.dir,
            base_offset,
            size=self._files.file_size(path),
            created_ms=self._task.now_ms,
            index_interval=self._task.config.index_interval_bytes,
            has_transactions=layout.TRANSACTION_INDEX in suffixes,
        )

    def _create(self, base_offset: int) -> Segment:
        self._changed = True
        return Segment.create(
            self._files,
            self._own,
            self._task.dir,
            base_offset,
            created_ms=self._task.now_ms,
            index_interval=self._task.config.index_interval_bytes,
            preallocate=self._task.config.segment_bytes if self._task.config.preallocate else 0,
        )

    def _check(self) -> int:
        """After a clean stop: the log's end offset. A log must end with a whole batch, or its end is gone through."""
        if not len(self._segments):
            return 0
        active = self._segments.active
        try:
            return active.next_offset()
        except CorruptBatchError as error:
            logger.warning("recovering %s: %s", self._task.dir, error)
            return self._recover_from(active.base_offset)

    def _wrongly_indexed(self) -> int:
        """Where the first segment begins whose .txnindex is none: it would show aborted records to consumers."""
        for segment in self._segments:
            try:
                segment.transactions()  # raises what is wrong with them
            except CorruptIndex as error:
                logger.warning("recovering %s: %s: %s", self._task.dir, segment.path(layout.TRANSACTION_INDEX), error)
                return segment.base_offset
        return _EVERYTHING

    def _is_untouched(self) -> bool:
        """Whether nothing was written since a clean stop, after which the broker ran once more and did not stop so.

        Then all of it is on disk, as after that stop. The .log's end says so, which an append moves away from where it
        was flushed (the first truncation takes the marker of that stop away), and its time as well, as long as nobody
        sets the clock to before the stop while the broker runs.
        """
        task = self._task
        if not task.stopped_ms or not len(self._segments):
            return False
        active = self._segments.active
        if active.has_transactions or active.modified_ms() >= task.stopped_ms:
            return False
        try:
            return active.next_offset() == task.recovery_point
        except CorruptBatchError:
            return False

    # Recovery

    def _recover_from(self, offset: int) -> int:
        """Goes through the segments that may hold records at or after `offset`; returns the log's end offset."""
        self._changed = True
        segments = self._segments.from_offset(self._before(offset))
        if not segments:
            return 0
        task = self._task
        earlier = Segments(segment for segment in self._segments if segment.base_offset < segments[0].base_offset)
        start = segments[0].base_offset
        if len(segments) > 1:
            self._rewritten = segments[1].base_offset - 1
        replay(self._producers, earlier, min(task.log_start_offset, start), start, task.now_ms)
        self._epochs.truncate_from_end(start)  # the file may be older than the last truncation
        next_offset = start
        scan = SegmentRecovery(
            self._files, self._producers, self._epochs, task.flushed, task.config.index_interval_bytes
        )
        for number, segment in enumerate(segments):
            self._producers.end_offset = max(self._producers.end_offset, segment.base_offset)
            self._producers.take_snapshot()
            if not self._follows(segment, next_offset):
                self._cut(segments[number:], next_offset)
                break
            size = segment.size
            follower = segments[number + 1].base_offset if number + 1 < len(segments) else None
            next_offset = scan.recover(segment, follower)
            if segment.size < size and next_offset != follower:  # else nothing is missing
                self._cut(segments[number + 1 :], next_offset)
                break
        self._segments.resized()
        return next_offset

    def _before(self, offset: int) -> int:
        """`offset`; or where the segment begins that ends there, if its files may be younger than the recovery point.

        A roll right after a flush leaves the point where the new segment begins, but the indexes of the one before may
        not be on the disk, nor what was cut off it since.
        """
        number = self._segments.floor_number(offset)
        if number < 1 or self._segments[number].base_offset != offset:
            return offset
        before = self._segments[number - 1]
        paths = before.existing_files()
        flushed = all(self._files.modified_ms(path) < self._task.recovery_point_ms for path in paths)
        return offset if flushed else before.base_offset

    def _follows(self, segment: Segment, next_offset: int) -> bool:
        """Whether a segment can be the one after a log that ends at `next_offset`.

        Compaction leaves gaps between segments, which stay when cleanup.policy changes, and what is before the log's
        start does not matter. Any other gap that is not wholly below the recovery point stands for records that a power
        cut took; a replica that kept what came after them would differ from its leader for ever.
        """
        if segment.base_offset <= next_offset:
            return segment.base_offset == next_offset
        task = self._task
        if task.config.compacted or segment.base_offset <= max(task.log_start_offset, task.cleaned):
            return True
        if segment.base_offset > task.flushed:
            return False
        logger.error("%s lacks the offsets from %d to %d (exclusive)", task.dir, next_offset, segment.base_offset)
        return True

    def _cut(self, segments: list[Segment], end_offset: int) -> None:
        """Removes what lies behind the place where the log was cut."""
        if segments:
            logger.warning("removing %d segments behind offset %d of %s", len(segments), end_offset, self._task.dir)
            self._remove(segments)
            self._files.sync_dir(self._task.dir)

    def _remove(self, segments: list[Segment]) -> None:
        self._segments.remove(segments)
        for segment in segments:
            segment.forget_open()
            for path in segment.existing_files():
                self._files.remove(path)
