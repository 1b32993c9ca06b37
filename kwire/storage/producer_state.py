"""The producers of one partition: who may append what next, which transactions are open, and the snapshots of that.

The way of an append through here:

    manager.begin_verification(…)         a guard for the first batch of a transaction, before its coordinator is asked
    manager.next_of(header)               most often: the entry that remembers the batch once it is written; or else
    manager.find_duplicate(header)        a client's batch that is in the log already: answer its old offsets
    manager.check_verified(header, …)     refuses a transactional batch that nobody has verified
    update = ProducerUpdate(manager, origin)
    update.append(header, base_offset)    refuses by KafkaError; the manager is as before
    … the batch is written …
    manager.apply(update)                 the batch counts
    manager.complete(completed)           for each transaction that the update ended
    manager.end_offset = …                the log end offset that this state is of

Records above `first_unstable_offset` are not for consumers that read committed records only: they belong to a
transaction that is open (`ongoing`), or that ended with a marker which is not yet below the high watermark.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from kwire.ports.files import FileSystem
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.control import EndTxnMarker, read_end_txn_marker
from kwire.protocol.records.crc import Buffer
from kwire.protocol.records.header import CONTROL_FLAG, BatchHeader
from kwire.storage.layout import DELETED, SNAPSHOT, parse_segment_name, segment_name
from kwire.storage.producer_entry import NO_OFFSET, BatchMetadata, CompletedTxn, ProducerEntry
from kwire.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot, encode_snapshot
from kwire.storage.validated import Origin
from kwire.storage.verification import Verification, VerificationGuard


class ProducerUpdate:
    """What one append makes of the producers in it, until it is written and `apply`ed."""

    __slots__ = ("_manager", "_origin", "completed", "entries", "settled", "started")

    def __init__(self, manager: ProducerStateManager, origin: Origin) -> None:
        self._manager = manager
        self._origin = origin
        self.entries: dict[int, ProducerEntry] = {}
        self.settled: list[int] = []
        """The producers that wrote to their transaction, or whose transaction ended, with what they had verified."""
        self.started: list[tuple[int, int]] = []
        """(first offset, producer id) of the transactions that begin here."""
        self.completed: list[CompletedTxn] = []
        """The transactions that end here, in order."""

    def append(
        self,
        header: BatchHeader,
        base_offset: int,
        marker: EndTxnMarker | None = None,
        transaction_version: int = 0,
    ) -> None:
        """Takes up a batch that will lie at `base_offset`; one without producer id, or a control batch without
        `marker` (compaction has emptied it), changes nothing.

        `transaction_version` is the transaction.version of a leader's marker. KafkaError: INVALID_PRODUCER_EPOCH,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED; the update is void then.
        """
        producer_id = header.producer_id
        if producer_id < 0:
            return
        manager = self._manager
        entry = self.entries.get(producer_id)
        if entry is None:
            known = manager._entries.get(producer_id)
            entry = self.entries[producer_id] = ProducerEntry(producer_id) if known is None else known.copy()
        verification = manager.verifications.get(producer_id)
        if not header.attributes & CONTROL_FLAG:
            if entry.append_data(header, base_offset, self._origin, manager, verification):
                self.started.append((base_offset, producer_id))
        elif marker is not None:
            completed = entry.append_marker(header, base_offset, marker, self._origin, manager, transaction_version)
            if completed is not None:
                self.completed.append(completed)
        if verification is not None and verification.settled_by(header):
            self.settled.append(producer_id)

    def append_batch(self, header: BatchHeader, batch: Buffer) -> None:
        """`append` for a batch that has its offset already: a follower's, or one of the log in recovery.

        CorruptBatchError if a control batch holds no marker that can be read.
        """
        if header.producer_id >= 0:
            self.append(header, header.base_offset, read_end_txn_marker(batch) if header.control else None)


_NONE: Final[dict[Any, Any]] = {}
_NOTHING: Final[list[Any]] = []
"""What a partition has as long as nobody has produced with an id: nothing of its own. Never filled."""


class ProducerStateManager:
    """The producer state of one partition and its snapshot files."""

    __slots__ = (
        "_entries",
        "_files",
        "_last_snapshot_offset",
        "_snapshots",
        "directory",
        "end_offset",
        "expiration_ms",
        "ongoing",
        "unreplicated",
        "verifications",
    )

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        expiration_ms: int,
        file_names: Iterable[str] | None = None,
    ) -> None:
        """`file_names`: those in `directory`, for a caller that has listed it already."""
        self._files = files
        self.directory = directory
        """Where the snapshots are; set anew when the partition's folder is renamed."""
        self.expiration_ms = expiration_ms
        """producer.id.expiration.ms; may change at any time."""
        self.end_offset = 0
        """The state is that of the log up to here (exclusive)."""
        self._entries: dict[int, ProducerEntry] = _NONE
        self.verifications: dict[int, Verification] = _NONE
        """Attempts to begin a transaction here, by producer id; not to be changed by others."""
        self.ongoing: dict[int, int] = _NONE
        """Open transactions: first offset -> producer id; not to be changed by others. Transactions begin at the log's
        end, so that they are in order of offsets."""
        # (first offset, offset of the marker) of ended transactions whose markers may be above the high watermark.
        self.unreplicated: list[tuple[int, int]] = _NOTHING
        self._last_snapshot_offset = 0
        self._snapshots = _snapshot_offsets(files.list(directory) if file_names is None else file_names)

    @property
    def entries(self) -> Mapping[int, ProducerEntry]:
        """By producer id; not to be changed."""
        return self._entries

    @property
    def name(self) -> str:
        """`topic-partition`, as the folder is called."""
        return self.directory.rpartition("/")[2]

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch in the log that this batch of a client repeats, if it is among the producer's last five."""
        entry = self._entries.get(header.producer_id)
        return None if entry is None else entry.find_duplicate(header)

    def next_of(self, header: BatchHeader) -> ProducerEntry | None:
        """The producer's entry where this batch of a client is plainly its next one (`ProducerEntry.follows`): once
        written it counts as soon as the entry `remember`s it, without an update."""
        entry = self._entries.get(header.producer_id)
        if entry is None or header.producer_id in self.verifications or not entry.follows(header):
            return None
        return entry

    def apply(self, update: ProducerUpdate) -> None:
        """Makes the update count. Nothing else may have been applied since it was begun."""
        if update.entries:
            self._entries = self._entries or {}
            self._entries.update(update.entries)
        for first_offset, producer_id in update.started:
            self._began(first_offset, producer_id)
        for producer_id in update.settled:
            self.verifications.pop(producer_id, None)

    def _began(self, first_offset: int, producer_id: int) -> None:
        self.ongoing = self.ongoing or {}
        self.ongoing[first_offset] = producer_id

    # Verification

    def begin_verification(
        self, producer_id: int, sequence: int, epoch: int, now_ms: int, *, supports_epoch_bump: bool
    ) -> VerificationGuard | None:
        """The guard with which a transactional batch of the producer may be appended; None where it needs none.

        `sequence` is the batch's base sequence, -1 for a coordinator's. `supports_epoch_bump`: the producer is of
        transaction version 2. Raises INVALID_PRODUCER_EPOCH.
        """
        self._check_epoch(producer_id, epoch)
        if self.writes_transaction(producer_id, epoch):
            return None
        verification = self.verifications.get(producer_id)
        if verification is None:
            verification = Verification(sequence, epoch, supports_epoch_bump, now_ms)
            self.verifications = self.verifications or {}
            self.verifications[producer_id] = verification
        verification.again(sequence, epoch)
        return verification.guard

    def check_verified(self, header: BatchHeader, guard: VerificationGuard | None, *, demanded: bool) -> None:
        """Lets a transactional batch pass if its transaction has written here, or with the guard of the producer.

        Without `demanded` (transaction.partition.verification.enable) with any. Raises INVALID_PRODUCER_EPOCH,
        INVALID_TXN_STATE.
        """
        producer_id = header.producer_id
        if self.writes_transaction(producer_id, header.producer_epoch):
            return
        self._check_epoch(producer_id, header.producer_epoch)
        if demanded and not header.control:
            verification = self.verifications.get(producer_id)
            if verification is None or verification.guard is not guard:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")

    def writes_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of that epoch has begun here and not ended."""
        entry = self._entries.get(producer_id)
        return entry is not None and entry.txn_first_offset != NO_OFFSET and entry.epoch == epoch

    def _check_epoch(self, producer_id: int, epoch: int) -> None:
        entry = self._entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {producer_id} is {epoch}, which is smaller than the last seen epoch {entry.epoch}",
            )

    # Transactions

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the first transaction begins that is open, or whose marker may be above the high watermark."""
        ongoing = next(iter(self.ongoing), None)
        if not self.unreplicated:
            return ongoing
        unreplicated = self.unreplicated[0][0]
        return unreplicated if ongoing is None else min(ongoing, unreplicated)

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """The last stable offset right after this transaction's marker, for the transaction index.

        To be asked before `complete`.
        """
        for first_offset, producer_id in self.ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTxn) -> None:
        """The transaction has ended. It stays unstable until the high watermark has passed its marker."""
        if self.ongoing.pop(completed.first_offset, None) is None:
            raise ValueError(f"{completed} was not open on partition {self.name}")
        self.unreplicated = self.unreplicated or []
        insort(self.unreplicated, (completed.first_offset, completed.last_offset))

    def on_high_watermark(self, high_watermark: int) -> None:
        """Ended transactions whose markers are below it are stable."""
        if self.unreplicated:
            self.unreplicated = [txn for txn in self.unreplicated if txn[1] >= high_watermark] or _NOTHING

    # Forgetting

    def remove_expired(self, now_ms: int) -> None:
        """Forgets the producers that have been silent for `expiration_ms`, unless a transaction of theirs is open.

        And the verifications begun so long ago, of which nothing came.
        """
        for producer_id in [entry.producer_id for entry in self._entries.values() if self._expired(entry, now_ms)]:
            del self._entries[producer_id]
        for producer_id, verification in list(self.verifications.items()):
            if now_ms - verification.started_ms >= self.expiration_ms:
                del self.verifications[producer_id]

    def _expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return entry.txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= self.expiration_ms

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Fits the state to a log of [log_start_offset, log_end_offset), which may have been cut at either side.

        If the state is of another end offset it is read anew from the latest snapshot within the log; `end_offset`
        says how far that goes, and what the log holds after it is for the caller to append. Snapshots outside the log
        are deleted. The high watermark must be at or above the end offset (so it is whenever a log is truncated).
        """
        for offset in self._snapshots:
            if not log_start_offset < offset <= log_end_offset:
                self._delete_snapshot(offset)
        if log_end_offset == self.end_offset:
            self.on_log_start_offset(log_start_offset)
            return
        self._clear()
        self._load(log_start_offset, now_ms)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forgets everything, deletes all snapshots; the state is that of an empty log from `offset` on."""
        self._clear()
        for snapshot in self._snapshots:
            self._delete_snapshot(snapshot)
        self._last_snapshot_offset = 0
        self.end_offset = offset

    def on_log_start_offset(self, log_start_offset: int) -> None:
        """The log begins later now. Producers are kept even if their records are gone."""
        if self.unreplicated:
            self.unreplicated = [txn for txn in self.unreplicated if txn[1] >= log_start_offset] or _NOTHING
        self.end_offset = max(self.end_offset, log_start_offset)
        self._last_snapshot_offset = self._snapshots[-1] if self._snapshots else log_start_offset

    def _clear(self) -> None:
        self._entries = self.ongoing = _NONE
        self.unreplicated = _NOTHING

    def _load(self, log_start_offset: int, now_ms: int) -> None:
        while self._snapshots:
            offset = self._snapshots[-1]
            try:
                loaded = decode_snapshot(self._files.read(self.snapshot_path(offset)))
            except (CorruptSnapshotError, FileNotFoundError):
                self._delete_snapshot(offset)
                continue
            kept = {entry.producer_id: entry for entry in loaded if not self._expired(entry, now_ms)}
            self._entries = kept or _NONE
            open_txns = [(e.txn_first_offset, e.producer_id) for e in loaded if e.txn_first_offset != NO_OFFSET]
            self.ongoing = dict(sorted(open_txns)) or _NONE
            self._last_snapshot_offset = self.end_offset = offset
            return
        self._last_snapshot_offset = self.end_offset = log_start_offset

    # Snapshots

    def snapshot_path(self, offset: int) -> str:
        return f"{self.directory}/{segment_name(offset, SNAPSHOT)}"

    @property
    def snapshots(self) -> list[int]:
        """The offsets (exclusive) of the snapshot files, ascending."""
        return list(self._snapshots)

    def take_snapshot(self) -> None:
        """Writes the state as of `end_offset`, unless there is a snapshot of it.

        It waits for no disk: a crash may leave a file that is torn or absent, and loading falls back to the snapshot
        before it.
        """
        offset = self.end_offset
        if offset <= self._last_snapshot_offset:
            return
        self._files.write(self.snapshot_path(offset), encode_snapshot(self._entries.values()))
        self._snapshots = tuple(sorted({*self._snapshots, offset}))
        self._last_snapshot_offset = offset

    def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
        """Deletes the snapshots that belong to no segment; the latest stays if it is above every segment (a clean stop
        leaves it)."""
        bases = set(segment_base_offsets)
        strays = [offset for offset in self._snapshots if offset not in bases]
        keep = strays[-1] if strays and (not bases or strays[-1] > max(bases)) else None
        for offset in strays:
            if offset != keep:
                self._delete_snapshot(offset)

    def end_transactions_in_snapshot(self, offset: int) -> None:
        """Has the snapshot of this offset, if there is one, say that no transaction was open: all that were have ended,
        and what says so may be cleaned away. As for `take_snapshot`, a torn one is no harm."""
        path = self.snapshot_path(offset)
        try:
            entries = decode_snapshot(self._files.read(path))
        except (CorruptSnapshotError, FileNotFoundError):
            return
        if any(entry.txn_first_offset != NO_OFFSET for entry in entries):
            for entry in entries:
                entry.txn_first_offset = NO_OFFSET
            self._files.write(path, encode_snapshot(entries))

    def mark_snapshot_deleted(self, offset: int) -> str | None:
        """Renames the snapshot of this offset (its segment is being deleted); the new path for the caller to remove
        later, None if there is no such file."""
        path = self._forget_snapshot(offset)
        if path is None:
            return None
        try:
            self._files.rename(path, path + DELETED)
        except FileNotFoundError:
            return None
        return path + DELETED

    def _forget_snapshot(self, offset: int) -> str | None:
        index = bisect_left(self._snapshots, offset)
        if index == len(self._snapshots) or self._snapshots[index] != offset:
            return None
        self._snapshots = self._snapshots[:index] + self._snapshots[index + 1 :]
        return self.snapshot_path(offset)

    def _delete_snapshot(self, offset: int) -> None:
        path = self._forget_snapshot(offset)
        if path is not None:
            try:
                self._files.remove(path)
            except FileNotFoundError:
                return


def _snapshot_offsets(names: Iterable[str]) -> tuple[int, ...]:
    parsed = (parse_segment_name(name) for name in names if name.endswith(SNAPSHOT))
    return tuple(sorted(found[0] for found in parsed if found is not None and found[1] == SNAPSHOT))
