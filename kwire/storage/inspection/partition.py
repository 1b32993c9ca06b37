"""One partition's folder, looked through from its first batch to its last."""

from __future__ import annotations

from dataclasses import dataclass

from kwire.ports.files import FileSystem
from kwire.ports.input import open_input
from kwire.protocol.records.header import BatchHeader, crc_matches
from kwire.storage import checkpoints, layout
from kwire.storage.checkpoints import CorruptCheckpoint
from kwire.storage.inspection.batches import NoBatch, batches, header_fault, header_oddity, only_padding
from kwire.storage.inspection.fault import Findings
from kwire.storage.inspection.indexes import OffsetIndexCheck, Tell, TimeIndexCheck
from kwire.storage.inspection.records import records_fault
from kwire.storage.inspection.transactions import ProducersCheck, check_order
from kwire.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot
from kwire.storage.reserve import PADDING
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.transaction_index import AbortedTransaction, decode_transactions


@dataclass(frozen=True, slots=True)
class Expected:
    """What a log dir says of a partition. Offsets exclusive; None where it says nothing."""

    trusted_to: int | None = None
    """Recovery builds the small files of segments that end behind this offset anew; None: it builds none."""
    recovery_point: int | None = None
    log_start: int | None = None
    high_watermark: int | None = None
    compacted: bool = False
    """The topic is, or was: that leaves gaps, and takes records of producers and transactions away."""
    busy: bool = False
    """A broker is at work: it may write, compact and remove meanwhile, so that only batches can be looked at."""


class PartitionInspection:
    """One pass over a partition's folder."""

    def __init__(self, files: FileSystem, folder: str, expected: Expected, findings: Findings, *, deep: bool) -> None:
        """`deep`: also every record."""
        self._files = files
        self._folder = folder
        self._expected = expected
        self._findings = findings
        self._deep = deep
        self._names = files.list(folder)
        self._bases = _offsets(self._names, layout.LOG)
        self._first_offset = 0
        self._next_offset = 0
        self._producers = ProducersCheck()
        self._snapshots = [] if expected.busy else _offsets(self._names, layout.SNAPSHOT)
        self._all_seen = True
        """Whether every batch so far was read: where one was not, nobody knows what its producer did."""
        self._epochs: list[tuple[int, int]] = []
        self._epoch_told = False

    def run(self) -> None:
        """Raises OSError where a file cannot be read."""
        self._findings.tally.partitions += 1
        self._look_at_names()
        if not self._expected.busy:  # else they may just be written
            self._load_epochs()
            self._check_topic_id()
        if self._bases:
            self._first_offset = self._next_offset = self._bases[0]
        for number, base_offset in enumerate(self._bases):
            try:
                self._segment(base_offset, sealed=number + 1 < len(self._bases))
            except FileNotFoundError as error:
                if not self._expected.busy:
                    raise
                self._findings.note(error.filename or self._folder, None, "it went away meanwhile")
                self._all_seen = False
        self._check_snapshots_to(self._next_offset + 1)
        for offset in self._snapshots if self._expected.trusted_to is None else ():
            path = self._path(offset, layout.SNAPSHOT)
            self._findings.fault(path, None, f"it is behind the end of the log, {self._next_offset}")
        self._check_end()

    # The folder

    def _look_at_names(self) -> None:
        for name in self._names:
            path = f"{self._folder}/{name}"
            parsed = layout.parse_segment_name(name)
            if name.endswith(layout.DELETED) and self._expected.busy:
                continue  # every retention and cleaning leaves some for a minute
            if name.endswith((layout.DELETED, layout.CLEANED, layout.SWAP, ".tmp")):
                self._findings.note(path, None, _LEFT_OVER[name.rpartition(".")[2]])
            elif parsed is not None and parsed[1] in layout.INDEX_SUFFIXES and parsed[0] not in self._bases:
                self._findings.note(path, None, "there is no segment to it: the next start removes it")
            elif (
                (parsed is None or parsed[1] not in (*layout.SEGMENT_SUFFIXES, layout.SNAPSHOT))
                and name not in (layout.PARTITION_METADATA, layout.LEADER_EPOCHS, "quorum-state")
                and layout.parse_kraft_snapshot(name) is None
            ):
                self._findings.note(path, None, "not a file of a log")

    def _load_epochs(self) -> None:
        if layout.LEADER_EPOCHS not in self._names:
            return
        path = f"{self._folder}/{layout.LEADER_EPOCHS}"
        try:
            self._epochs = checkpoints.decode_epochs(self._files.read(path))
        except CorruptCheckpoint as error:
            self._findings.fault(path, None, str(error))
        for before, after in zip(self._epochs, self._epochs[1:], strict=False):
            if not (before[0] < after[0] and before[1] < after[1]):
                self._findings.fault(path, None, f"epoch {after[0]} at {after[1]} follows {before[0]} at {before[1]}")
                self._epochs = []
                break

    def _check_topic_id(self) -> None:
        if layout.PARTITION_METADATA in self._names:
            path = f"{self._folder}/{layout.PARTITION_METADATA}"
            try:
                checkpoints.decode_partition_metadata(self._files.read(path))
            except CorruptCheckpoint as error:
                self._findings.fault(path, None, str(error))

    # The segments

    def _segment(self, base_offset: int, *, sealed: bool) -> None:
        path = self._path(base_offset, layout.LOG)
        size = self._files.file_size(path)
        self._findings.tally.segments += 1
        if base_offset < self._next_offset:
            self._findings.fault(path, None, f"the segment before it ends at offset {self._next_offset} only")
        trusted = self._trusts(base_offset, sealed=sealed)
        listed = self._aborted(base_offset) if trusted else None
        offsets, times = self._indexes(base_offset, size, sealed=sealed) if trusted else (None, None)
        markers: set[int] = set()
        done = 0
        with open_input(path) as file:
            try:
                for position, header, batch in batches(file, size):
                    end = position + header.size
                    if batch[-1:] == PADDING and not crc_matches(header, batch) and only_padding(file, end, size):
                        raise NoBatch(position, f"a torn batch of {header.size} bytes, in a reserve", torn=True)
                    self._batch(path, base_offset, position, header, batch, listed)
                    if header.control:
                        markers.add(header.base_offset)
                    if offsets is not None:
                        offsets.batch(position, header)
                    if times is not None:
                        times.batch(header)
                    done = end
                    self._findings.advance(header.size)
            except NoBatch as error:
                self._findings.advance(size - done)
                self._all_seen = False
                if error.torn and not sealed and not trusted:
                    self._findings.note(path, error.position, f"{error}: being written, or cut off by the next start")
                else:
                    self._findings.fault(path, error.position, str(error))
                return
        self._findings.advance(size - done)
        if offsets is not None:
            offsets.end()
        if times is not None:
            times.end(sealed=sealed)
        if listed:
            index_path = self._path(base_offset, layout.TRANSACTION_INDEX)
            check_order(list(listed.values()), markers, lambda at, text: self._findings.fault(index_path, at, text))

    def _batch(
        self,
        path: str,
        base_offset: int,
        position: int,
        header: BatchHeader,
        batch: memoryview,
        listed: dict[int, AbortedTransaction] | None,
    ) -> None:
        tally = self._findings.tally
        tally.batches += 1
        tally.bytes += header.size
        tally.records += max(header.count, 0)
        if not crc_matches(header, batch):
            self._findings.fault(path, position, f"the batch at offset {header.base_offset} has a wrong checksum")
            self._next_offset = max(self._next_offset, header.next_offset)
            self._all_seen = False
            return
        text = header_fault(header, self._next_offset, base_offset) or self._gap(header)
        if self._snapshots and self._snapshots[0] <= header.base_offset:
            self._check_snapshots_to(header.base_offset + 1)
        if text is None and header.producer_id >= 0 and self._all_seen:
            text = self._producers.batch(header, batch, listed, self._known_from)
        if text is None and self._deep:
            text = records_fault(header, batch)
        if text is not None:
            self._findings.fault(path, position, f"the batch at offset {header.base_offset}: {text}")
        oddity = header_oddity(header)
        if oddity is not None:
            self._findings.note(path, position, f"the batch at offset {header.base_offset}: {oddity}")
        self._check_epoch(path, position, header)
        self._next_offset = max(self._next_offset, header.next_offset)

    def _gap(self, header: BatchHeader) -> str | None:
        """Offsets that no record has: compaction leaves them, nothing else does."""
        if self._expected.busy or self._expected.compacted:
            return None
        log_start = self._expected.log_start or 0
        if header.base_offset > self._next_offset and self._next_offset > self._first_offset:
            if header.base_offset > log_start:
                return f"offsets {self._next_offset} to {header.base_offset - 1} are missing before it"
        elif header.count <= header.last_offset_delta and header.last_offset >= log_start:
            return f"{header.count} records on {header.last_offset_delta + 1} offsets, and the log was not compacted"
        return None

    def _check_epoch(self, path: str, position: int, header: BatchHeader) -> None:
        epochs = self._epochs
        while len(epochs) > 1 and epochs[1][1] <= header.base_offset:
            epochs.pop(0)
        if not epochs or header.leader_epoch < 0 or epochs[0][1] > header.base_offset or self._epoch_told:
            return
        newer = header.leader_epoch > epochs[0][0] and len(epochs) == 1  # written after the file
        if header.leader_epoch != epochs[0][0] and not (newer and self._expected.trusted_to is not None):
            self._epoch_told = True
            self._findings.fault(
                path,
                position,
                f"the batch at offset {header.base_offset} is of leader epoch {header.leader_epoch}, "
                f"{layout.LEADER_EPOCHS} says {epochs[0][0]}",
            )

    # The small files

    @property
    def _known_from(self) -> int:
        """From here on no record is gone; above all where the topic is compacted."""
        return 1 << 63 if self._expected.compacted else self._first_offset

    def _trusts(self, base_offset: int, *, sealed: bool) -> bool:
        """Whether the small files of a segment have to be right."""
        trusted_to = self._expected.trusted_to
        if trusted_to is None:
            return True
        return sealed and self._bases[self._bases.index(base_offset) + 1] <= trusted_to

    def _indexes(
        self, base_offset: int, size: int, *, sealed: bool
    ) -> tuple[OffsetIndexCheck | None, TimeIndexCheck | None]:
        def read(suffix: str) -> bytes | None:
            path = self._path(base_offset, suffix)
            if path.rpartition("/")[2] in self._names:
                return self._files.read(path)
            if sealed and size:
                self._findings.fault(path, None, "missing (a start builds it anew)")
            return None

        def teller(suffix: str) -> Tell:
            return lambda at, text: self._findings.fault(self._path(base_offset, suffix), at, text)

        offsets, times = read(layout.OFFSET_INDEX), read(layout.TIME_INDEX)
        return (
            None if offsets is None else OffsetIndexCheck(offsets, base_offset, teller(layout.OFFSET_INDEX)),
            None if times is None else TimeIndexCheck(times, base_offset, teller(layout.TIME_INDEX)),
        )

    def _aborted(self, base_offset: int) -> dict[int, AbortedTransaction]:
        path = self._path(base_offset, layout.TRANSACTION_INDEX)
        if path.rpartition("/")[2] not in self._names:
            return {}
        try:
            found = decode_transactions(self._files.read(path), base_offset)
        except CorruptIndex as error:
            self._findings.fault(path, None, str(error))
            return {}
        return {transaction.last_offset: transaction for transaction in found}

    def _check_snapshots_to(self, end_offset: int) -> None:
        """Those as of offsets below `end_offset`, at which the log has arrived."""
        while self._snapshots and self._snapshots[0] < end_offset:
            path = self._path(self._snapshots.pop(0), layout.SNAPSHOT)
            try:
                entries = decode_snapshot(self._files.read(path))
                text = self._producers.snapshot_fault(entries, self._known_from) if self._all_seen else None
            except CorruptSnapshotError as error:
                text = str(error)
            if text is not None:
                self._findings.fault(path, None, text)

    def _check_end(self) -> None:
        if self._expected.busy and not self._all_seen:
            return
        expected, folder = self._expected, self._folder
        for what, offset in (
            (layout.RECOVERY_POINTS, expected.recovery_point),
            (layout.LOG_START_OFFSETS, expected.log_start),
            (layout.HIGH_WATERMARKS, expected.high_watermark),
        ):
            if offset is not None and offset > self._next_offset:
                text = f"{what} says {offset}, and the log ends at offset {self._next_offset}: records are missing"
                self._findings.fault(folder, None, text)

    def _path(self, offset: int, suffix: str) -> str:
        return f"{self._folder}/{layout.segment_name(offset, suffix)}"


_LEFT_OVER = {
    "deleted": "waits for its removal: the next start sees to it",
    "cleaned": "an unfinished compaction: the next start removes it",
    "swap": "an interrupted compaction: the next start finishes it",
    "tmp": "left by an interrupted write",
}


def _offsets(names: list[str], suffix: str) -> list[int]:
    parsed = map(layout.parse_segment_name, names)
    return sorted(each[0] for each in parsed if each is not None and each[1] == suffix)
