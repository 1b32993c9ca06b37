"""The log of one partition: appends, offsets, rolling, flushing.

        log start offset          high watermark     log end offset
               v                        v                  v
    | segment 0 | segment 4711 | segment 9000 (active)     |
                                 ^
                                 recovery point: everything before it is on disk, whatever happens

    log start <= high watermark <= log end;  last stable offset = min(high watermark, first unstable offset)

An append is written, indexed and counted without giving up control in between, so that nobody sees half of one; it
awaits only an fsync that flush.messages asks for. What may take long (fsync, look-ups in cold segments, deletions)
runs in worker threads on what it was given, and its result is taken over on the event loop.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from kwire.config.definition import MAX_LONG
from kwire.config.topic import LogConfig
from kwire.ports.at_once import needs_task
from kwire.ports.files import Buffer
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.header import NO_TIMESTAMP, BatchHeader, iter_batches, write_prefix
from kwire.storage import appending, flushing, reading, retention, rolling, timestamps, truncating
from kwire.storage.append_info import AppendInfo
from kwire.storage.checkpoints import TopicPartition
from kwire.storage.group_commit import GroupCommit
from kwire.storage.log_dir import LogDir
from kwire.storage.reading import LogRead
from kwire.storage.received import Placed, UnexpectedAppendOffset, check_received, fitting
from kwire.storage.record_walk import PendingWalk
from kwire.storage.recovery import LoadedLog
from kwire.storage.segment import Segment
from kwire.storage.services import StorageServices
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.timestamps import FoundOffset
from kwire.storage.transaction_index import AbortedTransaction
from kwire.storage.validated import Origin, ValidatedBatch
from kwire.storage.validation import check, first_batch
from kwire.storage.verification import VerificationGuard

_new: Final = tuple.__new__
"""Makes a named tuple in one call of C."""

__all__ = ["AppendInfo", "FoundOffset", "Log", "LogRead", "UnexpectedAppendOffset"]


class Listener(Protocol):
    """Whoever tells others of what the log has."""

    def changed(self) -> None:
        """Must not raise, must not wait."""


class Log:
    """One partition's log. Offsets are ints; ends are exclusive. For the event loop's thread only.

    Whatever touches the disk raises KAFKA_STORAGE_ERROR where that fails, and the log dir is offline from then on.
    """

    __slots__ = (
        "changed",
        "commits",
        "config",
        "deleted",
        "dir",
        "epochs",
        "high_watermark",
        "high_watermark_noted",
        "key",
        "last_flush",
        "listener",
        "log_dir",
        "log_end_offset",
        "log_start_offset",
        "name",
        "names_synced",
        "names_version",
        "partition",
        "producer_state",
        "recovery_point",
        "segments",
        "services",
        "tiered_end_offset",
        "to_lower",
        "topic",
        "topic_id",
        "version",
    )

    def __init__(
        self,
        services: StorageServices,
        log_dir: LogDir,
        key: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
    ) -> None:
        self.services = services
        self.log_dir = log_dir
        self.key = key
        self.topic, self.partition = key
        self.name = f"{self.topic}-{self.partition}"
        """`topic-partition`"""
        self.topic_id = loaded.topic_id
        self.configure(config)
        self.dir = loaded.segments.active.dir
        """The partition's folder."""
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producer_state = loaded.producer_state
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.high_watermark_noted = False
        """Whether its dir's checkpoint is going to look at it: asked before `note_high_watermark`, which most appends
        need not call then."""
        self.high_watermark = 0
        """What consumers may read up to (exclusive): the leader's or follower's view of what is replicated."""
        self.set_high_watermark(loaded.high_watermark)
        self.tiered_end_offset = 0
        """What is before it (exclusive) is in remote storage, as far as this broker knows (remote.storage.enable)."""
        self.version = 0
        """Counts truncations: work begun before one must not be taken over after it."""
        self.last_flush = services.clock.monotonic()
        """When (seconds, monotonic) the log was last flushed or, before that, loaded."""
        self.changed = loaded.changed
        """Whether there is something to complete or to sync when the log is closed."""
        self.to_lower: dict[str, int] = {}
        """Checkpoints that say more of the log than a truncation has left, and what they are to say."""
        self.deleted = False
        """Whether the partition was deleted."""
        self.listener: Listener | None = None
        """Told when the log's start moves, whoever moves it: a request, retention, the copier of a tiered log."""
        self.commits: GroupCommit | None = None
        """Present once a flush was asked for."""
        self.names_version = 1
        """Counts the files that were made or replaced in the folder."""
        self.names_synced = 0
        """Up to which of them the folder is known to be on disk."""
        self.segments.active.roll_jitter_ms = rolling.jitter(self)

    def __repr__(self) -> str:
        return f"Log({self.dir}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def size(self) -> int:
        """Bytes of all .log files."""
        return self.segments.size

    @property
    def local_start_offset(self) -> int:
        """The first offset whose record is here; of a tiered log there are earlier ones in remote storage."""
        return max(self.log_start_offset, self.segments.first.base_offset)

    @property
    def tiered(self) -> bool:
        """Whether segments go to remote storage before they go from here (KIP-405)."""
        return self.config.remote_storage_enable and not self.config.compacted

    def configure(self, config: LogConfig) -> None:
        """Has the log go by another configuration of its topic from now on."""
        self.config = config
        self.services.configured(self)

    def check_usable(self) -> None:
        """Raises KAFKA_STORAGE_ERROR if the log dir is offline, UNKNOWN_TOPIC_OR_PARTITION if the log was deleted."""
        self.log_dir.check_online()
        if self.deleted:
            raise self._deleted()

    def failed(self, what: str, error: OSError, log_dir: LogDir | None = None) -> KafkaError:
        """The error to raise after a failed access, which takes the log dir offline unless the log was deleted.

        `log_dir`: where the access was, if the log may have been moved meanwhile.
        """
        if self.deleted:
            return self._deleted()
        return (log_dir or self.log_dir).fail(f"{what} of {self.name} failed", error)

    def _deleted(self) -> KafkaError:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{self.name} was deleted")

    # Offsets

    def set_high_watermark(self, offset: int) -> None:
        """Moves the high watermark to `offset`, also back, within the log."""
        self.high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.producer_state.on_high_watermark(self.high_watermark)
        if not self.high_watermark_noted:
            self.note_high_watermark()

    def advance_high_watermark(self, offset: int) -> bool:
        """Moves the high watermark to `offset`, at most to the log's end, never back. Whether it moved."""
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        if self.producer_state.unreplicated:
            self.producer_state.on_high_watermark(offset)
        if not self.high_watermark_noted:
            self.note_high_watermark()
        return True

    def note_high_watermark(self) -> None:
        """Has its dir's checkpoint of high watermarks look at it."""
        self.high_watermark_noted = True
        self.log_dir.high_watermarks.note(self.key)

    @property
    def last_stable_offset(self) -> int:
        """What read_committed consumers may read up to (exclusive)."""
        producers = self.producer_state
        if not (producers.ongoing or producers.unreplicated):
            return self.high_watermark
        unstable = producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def unflushed(self) -> int:
        """Records not known to be on disk."""
        return self.log_end_offset - self.recovery_point

    def advance_log_start(self, offset: int) -> bool:
        """Moves the log's start to `offset` (inclusive), never back; the next retention check removes the segments.

        Whether it moved. Raises OFFSET_OUT_OF_RANGE beyond the high watermark.
        """
        self.check_usable()
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.name} since it is larger than "
                f"the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producer_state.on_log_start_offset(offset)
        if self.listener is not None:
            self.listener.changed()
        return True

    # Appending

    def begin_verification(
        self, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """See `ProducerStateManager.begin_verification`."""
        now_ms = self.services.clock.wall_ms()
        return self.producer_state.begin_verification(
            producer_id, sequence, epoch, now_ms, supports_epoch_bump=supports_epoch_bump
        )

    def writes_transaction(self, header: BatchHeader) -> bool:
        """Whether the transaction that a producer's batch belongs to has records here, so that nobody need be asked."""
        return self.producer_state.writes_transaction(header.producer_id, header.producer_epoch)

    @property
    def append_waits(self) -> bool:
        """Whether an append may wait for more than its write: for indexes to be read, checkpoints, a flush."""
        active = self.segments.active
        return (
            bool(self.to_lower)
            or (active.indexes is None and active.append_waits)
            or self.config.flush_messages < MAX_LONG
        )

    def append_at_once(
        self,
        batch: ValidatedBatch,
        leader_epoch: int,
        *,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
        verification: VerificationGuard | None = None,
    ) -> AppendInfo:
        """As `append_as_leader`, where not `append_waits`."""
        offset = self.log_end_offset
        self.epochs.assign(leader_epoch, offset)
        header = batch.header
        buffers = [write_prefix(offset, header.batch_length, leader_epoch), *batch.parts]
        placed = _new(Placed, (header, offset, buffers))
        return appending.append(self, [placed], batch.log_append_time, origin, transaction_version, verification)

    async def append_as_leader(
        self,
        batch: ValidatedBatch | Buffer,
        leader_epoch: int,
        *,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
        verification: VerificationGuard | None = None,
    ) -> AppendInfo:
        """Appends a batch at the log's end, giving it an offset and the leader's epoch.

        A blob of bytes is validated first. `transaction_version` is that under which a marker is written,
        `verification` what `begin_verification` gave for the first batch of a transaction.

        Raises InvalidBatch; KafkaError OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE,
        TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR. The log is then as it was before.
        """
        if not isinstance(batch, ValidatedBatch):
            batch = await self._validate(batch, origin)
        if self.append_waits:
            await needs_task()  # between the append and a flush that it waits for nobody else may come
            await self._ready_to_append()
        info = self.append_at_once(
            batch, leader_epoch, origin=origin, transaction_version=transaction_version, verification=verification
        )
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            await self.flush(first_offset=None if info.duplicate else info.first_offset)
        return info

    async def _validate(self, records: Buffer, origin: Origin) -> ValidatedBatch:
        header, batch = first_batch(records)
        checked = check(header, batch, self.config, self.services.clock.wall_ms(), origin=origin, name=self.name)
        if not isinstance(checked, PendingWalk):
            return checked
        return await self.services.executor.run(checked.run) if checked.large else checked.run()

    async def _ready_to_append(self) -> None:
        """Has a worker thread load the indexes of the active segment, if nothing was appended since the start.

        And, after a truncation, lower the checkpoints.
        """
        if self.to_lower:
            try:
                await truncating.lower_checkpoints(self)
            except OSError as error:
                raise self.failed("truncation", error) from error
        while (active := self.segments.active).append_waits:
            version = active.version
            try:
                indexes = await self.services.executor.run(active.load_indexes, active.file)
                if version == active.version:
                    active.take_indexes(indexes)
            except OSError as error:
                raise self.failed("append", error) from error

    async def append_as_follower(self, records: Buffer, leader_epoch: int | None = None) -> AppendInfo:
        """Appends what the leader sent, offsets and epochs as they are; an incomplete batch at the end is left out.

        So is all from the first batch of an epoch later than `leader_epoch` on: an answer's records are read when it is
        sent, and by then its sender may follow another leader, of whom they are (KAFKA-18723).

        Raises CorruptBatchError; UnexpectedAppendOffset for batches that begin before the log's end;
        KAFKA_STORAGE_ERROR.
        """
        batches: list[Placed] = []
        for header, batch in iter_batches(records):
            if leader_epoch is not None and header.leader_epoch > leader_epoch:
                break
            batches.append(Placed(header, header.base_offset, [batch]))
        await self._ready_to_append()
        check_received(self, batches)
        first_offset = batches[0].base_offset if batches else self.log_end_offset
        newest = NO_TIMESTAMP
        while batches:
            group = fitting(self, batches)
            for header, base_offset, _ in group:
                if header.leader_epoch >= 0:
                    self.epochs.assign(header.leader_epoch, base_offset)
            newest = max(newest, appending.append(self, group, -1, Origin.REPLICATION).max_timestamp)
            del batches[: len(group)]
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            await self.flush(first_offset=first_offset)
        return AppendInfo(first_offset, self.log_end_offset - 1, newest, -1, self.log_start_offset)

    # Rolling

    def roll(self) -> Segment:
        """Begins a new segment at the log's end, unless the active one is empty. Returns the active one."""
        self.check_usable()
        try:
            return rolling.roll(self, self.log_end_offset) if self.segments.active.size else self.segments.active
        except OSError as error:
            raise self.failed("roll", error) from error

    # Flushing

    async def flush(self, offset: int | None = None, *, first_offset: int | None = None) -> None:
        """Brings everything appended so far, or what is before `offset`, onto the disk.

        `first_offset`: where the append begins that waits for this, and that nobody is to see before. Flushes that are
        asked for while one is under way are one (see `kwire.storage.group_commit`).
        """
        self.check_usable()
        try:
            await self._group_commit().flush(self, self.log_end_offset if offset is None else offset, first_offset)
        except OSError as error:
            raise self.failed("flush", error) from error

    def flushes_held(self) -> AbstractAsyncContextManager[None]:
        """While this is entered nothing is flushed, and the recovery point stays: who asks for a flush waits."""
        return self._group_commit().held()

    def _group_commit(self) -> GroupCommit:
        if self.commits is None:
            self.commits = GroupCommit()
        return self.commits

    @property
    def settled_end_offset(self) -> int:
        """The end (exclusive) of what waits for no flush that its append asked for: more is not to be seen yet."""
        waiting = None if self.commits is None else self.commits.first_waiting
        return self.log_end_offset if waiting is None else min(waiting, self.log_end_offset)

    async def close(self) -> None:
        """Brings everything onto the disk, with a snapshot of the producers, and lets go of the files."""
        await flushing.close(self)

    def forget_files(self) -> None:
        """Lets go of all open files, and of what upkeep and the cleaner would do: it is closed, deleted, or lost."""
        self.services.forget(self)
        for segment in self.segments:
            segment.forget_open()

    def retire_to(self, folder: str) -> None:
        """The partition was deleted, and its folder is being renamed: what is still under way goes on in it.

        Whoever still has the log gets UNKNOWN_TOPIC_OR_PARTITION from now on.
        """
        self.deleted = True
        self.dir = self.producer_state.directory = folder
        for segment in self.segments:
            segment.dir = folder

    # Reading

    def read(self, offset: int, max_bytes: int, *, upto: int | None = None, min_one: bool = False) -> LogRead:
        """Where the batches from `offset` on lie, at most `max_bytes` and only what is before offset `upto`.

        With `min_one` the first batch is whole however large it is. Reads index entries and batch headers at most; to
        wait for none of that on a disk, use `fetch`. Raises OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
        """
        try:
            return reading.read(self, offset, max_bytes, upto, min_one)
        except OSError as error:
            raise self.failed("read", error) from error

    async def fetch(self, offset: int, max_bytes: int, *, upto: int | None = None, min_one: bool = False) -> LogRead:
        """As `read`, but never waits for the disk on the event loop: what is cold is read by a worker thread first.

        The slice is in the page cache when it returns, so that sending it does not wait either; but the last little
        bit of the log is not looked for there, since who reads so little finds out by reading it.
        """
        try:
            return await reading.fetch(self, offset, max_bytes, upto, min_one)
        except OSError as error:
            raise self.failed("read", error) from error

    def fetch_at_once(
        self, offset: int, max_bytes: int, *, upto: int | None = None, min_one: bool = False
    ) -> LogRead | None:
        """As `fetch`, but None where something is cold, or where it fails."""
        try:
            return reading.at_once(self, offset, max_bytes, upto, min_one)
        except (KafkaError, OSError):
            return None

    def has_aborted(self, found: LogRead) -> bool:
        """Whether there are aborted transactions that a read may meet: any in its segment or in those behind it."""
        return reading.has_aborted(self, found)

    def aborted(self, offset: int, found: LogRead) -> list[AbortedTransaction]:
        """The aborted transactions that a read from `offset` meets, for read_committed consumers."""
        try:
            return reading.aborted(self, offset, found)
        except OSError as error:
            raise self.failed("read", error) from error
        except CorruptIndex as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self.dir}: {error}") from error

    async def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record whose time (ms) is `timestamp` or later; None where all are older."""
        return await timestamps.offset_for_timestamp(self, timestamp)

    async def max_timestamp_offset(self) -> FoundOffset | None:
        """The first record of the newest time; None where the log has none."""
        return await timestamps.max_timestamp_offset(self)

    # Truncating and deleting

    def truncate_to(self, offset: int) -> bool:
        """Removes everything at or after `offset`; whether there was anything. Cuts at batch boundaries only."""
        return truncating.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> None:
        """Removes everything; the next append is of `offset`. The log's start may be said to be before that."""
        truncating.truncate_fully_and_start_at(self, offset, log_start_offset)

    async def delete_old_segments(self, now_ms: int) -> int:
        """Removes the segments that retention.ms, retention.bytes and the log's start no longer keep; returns how many.

        Never one with records at or above the high watermark. Their files go after file.delete.delay.ms.
        """
        return await retention.delete_old_segments(self, now_ms)
