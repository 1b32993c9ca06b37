"""This broker's copy of a partition, whatever its role: epoch fencing, reads and look-ups."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kwire.metadata.image import NO_LEADER
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.storage.leader_epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEnd

if TYPE_CHECKING:
    from kwire.ports.files import FileSlice
    from kwire.ports.transport import Streamed
    from kwire.storage.log import Log
    from kwire.storage.log_dir import LogDir
    from kwire.storage.timestamps import FoundOffset
    from kwire.storage.transaction_index import AbortedTransaction

NO_EPOCH: Final = -1
"""An epoch that a request does not say."""

NO_SUCH_PARTITION: Final = "This server does not host this topic-partition."
"""What Kafka says with UNKNOWN_TOPIC_OR_PARTITION."""

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
"""The timestamps of a ListOffsets request that are no times."""


class Bound(IntEnum):
    """Up to where a reader may see. The first two numbers are a request's isolation level."""

    HIGH_WATERMARK = 0
    """read_uncommitted: what is on all in-sync replicas."""
    LAST_STABLE_OFFSET = 1
    """read_committed: likewise, and before the first open transaction."""
    LOG_END = 2
    """A follower: everything."""


class PartitionRead(NamedTuple):
    """What a fetch of one partition gets."""

    slice: FileSlice | Streamed | None
    """Whole batches, of which the first may begin before the offset asked for; None where there is nothing."""
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    log_end_offset: int
    """As it was before the read."""
    diverging: EpochEnd | None = None
    """Set: the reader's history is not this one; it shares it at most up to the end of that epoch."""
    aborted: list[AbortedTransaction] | None = None
    """For LAST_STABLE_OFFSET only: the aborted transactions that the records meet."""
    tiered: bool = False
    """Whether the offset is in remote storage only, where the caller has to look for it."""
    log_dir: LogDir | None = None
    """Where the slice is. By the time that it is read the log may have been moved."""
    leader_epoch: int = NO_EPOCH
    """What it was here, if that is told."""


class ListedOffset(NamedTuple):
    """An answer to a ListOffsets request; all -1 where there is no such offset."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class Replica:
    """One partition as this broker has it. Not to be used before the ReplicaManager gave it a log."""

    __slots__ = (
        "deleted",
        "epoch_start_offset",
        "index",
        "is_leader",
        "leader",
        "leader_epoch",
        "log",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, index: int, topic_id: bytes) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log: Log | None = None
        """None while there is none: its log dir is offline."""
        self.deleted = False
        """Whether its topic is gone, which whoever still holds this is told by UNKNOWN_TOPIC_OR_PARTITION."""
        self.is_leader = False
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.epoch_start_offset: int | None = None
        """Where the leader epoch of this broker began; None on a follower."""

    def __repr__(self) -> str:
        role = "leader" if self.is_leader else f"follower of {self.leader}"
        return f"<{self.topic}-{self.index} {role} epoch={self.leader_epoch}>"

    def local_log(self, current_leader_epoch: int = NO_EPOCH, *, leader_only: bool = True) -> Log:
        """The log, for a request that believes in `current_leader_epoch`.

        Raises FENCED_LEADER_EPOCH for an older epoch, UNKNOWN_LEADER_EPOCH for a newer one, NOT_LEADER_OR_FOLLOWER
        where a leader is asked for and this broker is none, UNKNOWN_TOPIC_OR_PARTITION where the partition is deleted,
        KAFKA_STORAGE_ERROR where the log dir is offline.
        """
        if self.log is None:
            raise self._offline()
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            older = current_leader_epoch < self.leader_epoch
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"The request has leader epoch {current_leader_epoch} of {self.name}, here it is {self.leader_epoch}",
            )
        if leader_only and not self.is_leader:
            raise self._not_leader()
        return self.log

    @property
    def name(self) -> str:
        """`topic-partition`, as in messages and file names."""
        return f"{self.topic}-{self.index}"

    def _not_leader(self) -> KafkaError:
        if self.deleted:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NO_SUCH_PARTITION)
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Leader not local for partition {self.name}, it is broker {self.leader}"
        )

    def _offline(self) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Partition {self.name} is in an offline log directory")

    async def fetch(
        self,
        offset: int,
        max_bytes: int,
        bound: Bound = Bound.HIGH_WATERMARK,
        *,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        min_one: bool = False,
        leader_only: bool = True,
    ) -> PartitionRead:
        """Reads from `offset` what `bound` lets the reader see, at most `max_bytes`; with `min_one`, at least a batch.

        An offset between the bound and the log's end reads nothing, and so does a `max_bytes` too small for the first
        batch, and an offset that is in remote storage only (KIP-405), which the answer says. With `last_fetched_epoch`
        (the epoch of the reader's last record) the histories are compared first (KIP-595). Cold data is left to a
        worker thread and awaited. Raises what `local_log` raises, and OFFSET_OUT_OF_RANGE for an offset before the
        log's start or after its end, or where that epoch is unknown here.
        """
        if self.is_leader and self.log is not None and current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            log = self.log
        else:
            log = self.local_log(current_leader_epoch, leader_only=leader_only)
        epoch, start, end = self.leader_epoch, log.log_start_offset, log.log_end_offset
        high_watermark, stable = log.high_watermark, log.last_stable_offset
        if last_fetched_epoch != NO_EPOCH:
            diverging = self._divergence(log, offset, last_fetched_epoch)
            if diverging is not None:
                return PartitionRead(None, high_watermark, stable, start, end, diverging)
        upto = high_watermark if bound == Bound.HIGH_WATERMARK else end if bound == Bound.LOG_END else stable
        try:
            found = await log.fetch(offset, max_bytes, upto=upto, min_one=min_one)
        except KafkaError as error:
            if error.code is ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE:
                return PartitionRead(None, high_watermark, stable, start, end, tiered=True)
            raise
        part = None if found.incomplete else found.slice
        aborted = None
        if bound == Bound.LAST_STABLE_OFFSET:
            aborted = [] if part is None else log.aborted(found.offset, found)
        return tuple.__new__(
            PartitionRead, (part, high_watermark, stable, start, end, None, aborted, False, log.log_dir, epoch)
        )

    def fetch_at_once(
        self, offset: int, max_bytes: int, bound: Bound, current_leader_epoch: int, *, min_one: bool
    ) -> PartitionRead | None:
        """As `fetch` for a consumer, where nothing is cold and no transaction was aborted from there on.

        None otherwise, or where it fails, or the offset is in remote storage only.
        """
        log = self.log
        if log is None or not self.is_leader or current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            return None
        start, end = log.log_start_offset, log.log_end_offset
        high_watermark, stable = log.high_watermark, log.last_stable_offset
        committed = bound == Bound.LAST_STABLE_OFFSET
        found = log.fetch_at_once(offset, max_bytes, upto=stable if committed else high_watermark, min_one=min_one)
        if found is None:
            return None
        part = None if found.incomplete else found.slice
        if committed and part is not None and log.has_aborted(found):
            return None
        return tuple.__new__(
            PartitionRead, (part, high_watermark, stable, start, end, None, None, False, log.log_dir, NO_EPOCH)
        )

    def is_read_up(self, offset: int, bound: Bound, current_leader_epoch: int) -> bool:
        """Whether who fetches from there may go on waiting: nothing is to be read that he may see, and nothing is wrong
        with what he asks for. It stays so until the partition changes."""
        log = self.log
        if log is None or not self.is_leader or current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            return False
        if log.deleted or log.log_dir.offline_reason is not None or not log.log_start_offset <= offset:
            return False
        end = log.last_stable_offset if bound == Bound.LAST_STABLE_OFFSET else log.high_watermark
        return end <= offset <= log.log_end_offset

    def is_behind(self, offset: int, bound: Bound) -> bool:
        """Whether the offset is in an earlier segment than the end of what may be read.

        A read does not go from one segment into the next, so that to wait there brings it no more.
        """
        log = self.log
        if log is None or offset >= log.segments.active.base_offset:
            return False
        segments = log.segments
        return segments.floor_number(offset) < segments.floor_number(self._visible_end(log, bound))

    def is_as_read(self, read: PartitionRead) -> bool:
        """Whether nothing has changed since, so that the same read by the leader would bring the same.

        (The last stable offset changes with the log's end or the high watermark only.)
        """
        log = self.log
        return (
            log is not None
            and self.is_leader
            and read.leader_epoch == self.leader_epoch
            and read.log_end_offset == log.log_end_offset
            and read.high_watermark == log.high_watermark
            and read.log_start_offset == log.log_start_offset
        )

    def _divergence(self, log: Log, offset: int, epoch: int) -> EpochEnd | None:
        """Where a reader whose last record (before `offset`) has this epoch leaves the history here; None: nowhere."""
        end = log.log_end_offset
        shared = log.epochs.end_offset_for(epoch, end)
        if shared.epoch == UNDEFINED_EPOCH or shared.end_offset == UNDEFINED_OFFSET:
            if log.tiered and log.log_start_offset <= offset < log.local_start_offset:
                return None  # as an offset that is not here: it is looked for in remote storage
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The end of the last fetched epoch {epoch} of {self.name} is not known here",
            )
        if offset < log.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.name}, but we only have log segments in the "
                f"range {log.log_start_offset} to {end}.",
            )
        return shared if shared.epoch < epoch or shared.end_offset < offset else None

    def end_of_epoch(self, epoch: int, *, current_leader_epoch: int = NO_EPOCH) -> EpochEnd:
        """Answers OffsetForLeaderEpoch: the largest epoch here not above `epoch`, and its end; -1, -1 where unknown.

        Raises what `local_log` raises.
        """
        log = self.local_log(current_leader_epoch)
        return log.epochs.end_offset_for(epoch, log.log_end_offset)

    async def list_offset(
        self,
        timestamp: int,
        isolation: Bound = Bound.HIGH_WATERMARK,
        *,
        current_leader_epoch: int = NO_EPOCH,
        leader_only: bool = True,
    ) -> ListedOffset:
        """The offset for a time, or for one of the special timestamps above. `isolation` LOG_END is for replicas.

        Raises what `local_log` raises, and OFFSET_NOT_AVAILABLE to a consumer while a new leader's high watermark is
        behind the beginning of its epoch: what it said now could be less than the leader before it had said (KIP-207).
        """
        log = self.local_log(current_leader_epoch, leader_only=leader_only)
        if timestamp == EARLIEST:
            return self._listed(log, log.log_start_offset)
        if timestamp == EARLIEST_LOCAL:
            return self._listed(log, log.local_start_offset)
        if timestamp == LATEST:
            self._check_settled(log, isolation)
            return ListedOffset(-1, self._visible_end(log, isolation), self.leader_epoch)
        found: ListedOffset | FoundOffset | None
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            found = self._border(log, timestamp)
        elif timestamp == MAX_TIMESTAMP:
            found = await log.max_timestamp_offset()
        else:
            found = await log.offset_for_timestamp(timestamp)
        if found is None or found.offset >= self._visible_end(log, isolation):
            self._check_settled(log, isolation)
            return ListedOffset()
        return ListedOffset(found.timestamp, found.offset, found.leader_epoch)

    def _border(self, log: Log, timestamp: int) -> ListedOffset | None:
        """The last offset in remote storage, or the first one that is not there, which may be the log's end."""
        if not log.tiered:
            return None
        pending = max(log.tiered_end_offset, log.log_start_offset)
        return self._listed(log, log.tiered_end_offset - 1 if timestamp == LATEST_TIERED else pending)

    @staticmethod
    def _listed(log: Log, offset: int) -> ListedOffset:
        epoch = log.epochs.epoch_at(offset)
        return ListedOffset(-1, offset, NO_EPOCH if epoch is None else epoch)

    def _check_settled(self, log: Log, isolation: Bound) -> None:
        begun = self.epoch_start_offset
        if isolation != Bound.LOG_END and begun is not None and begun > log.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"The high watermark of {self.name} ({log.high_watermark}) is behind the offset at which leader epoch "
                f"{self.leader_epoch} began ({begun})",
            )

    @staticmethod
    def _visible_end(log: Log, isolation: Bound) -> int:
        if isolation == Bound.LOG_END:
            return log.log_end_offset
        return log.high_watermark if isolation == Bound.HIGH_WATERMARK else log.last_stable_offset
