"""Reading __cluster_metadata-0: the newest snapshot, then the log from there on.

    00000000000000000000.log  00000000000000004711.log
    00000000000000004200-0000000007.checkpoint      a snapshot: all records below offset 4200, of epoch 7

A snapshot is a file of batches like a segment, between a header and a footer that are control records.
"""

from __future__ import annotations

from kwire.cluster.adoption import AdoptionError
from kwire.cluster.adoption.state import KraftState
from kwire.ports.files import FileSystem
from kwire.ports.input import open_input
from kwire.protocol.codec.errors import MalformedError, UnsupportedVersionError
from kwire.protocol.framed import UnknownRecord
from kwire.protocol.metadata_records.serde import decode_record
from kwire.protocol.records.control import ControlType, control_type
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import crc_matches
from kwire.protocol.records.record import iter_records
from kwire.storage import layout
from kwire.storage.inspection.batches import NoBatch, batches


def read_state(files: FileSystem, folder: str) -> KraftState:
    """What the metadata in the folder say. Raises AdoptionError, OSError.

    An interrupted write at the log's end is overlooked, as the controller itself does.
    """
    names = files.list(folder)
    snapshots = {found: name for name in names if (found := layout.parse_kraft_snapshot(name)) is not None}
    segments = sorted(
        parsed[0]
        for name in names
        if (parsed := layout.parse_segment_name(name)) is not None and parsed[1] == layout.LOG
    )
    reader = _Reader(files)
    start = 0
    if snapshots:
        start = max(snapshots)[0]
        reader.read_snapshot(f"{folder}/{snapshots[max(snapshots)]}")
    if not segments or segments[0] > start:
        first = f"begins at offset {segments[0]}" if segments else "is missing"
        raise AdoptionError(f"{folder}: the log {first}, and the newest snapshot ends at offset {start}")
    reader.next_offset = start
    for number, base_offset in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1] <= start:
            continue
        path = f"{folder}/{layout.segment_name(base_offset, layout.LOG)}"
        reader.read_segment(path, start, last=number + 1 == len(segments))
    if not reader.state.features:
        raise AdoptionError(f"{folder}: no metadata there: was this Apache Kafka ever started?")
    return reader.state


class _Reader:
    def __init__(self, files: FileSystem) -> None:
        self.state = KraftState()
        self.next_offset = 0
        self._files = files

    def read_snapshot(self, path: str) -> None:
        if ControlType.SNAPSHOT_FOOTER not in self._read(path, 0, torn_is_end=False):
            raise AdoptionError(f"{path}: the snapshot has no end")

    def read_segment(self, path: str, start: int, *, last: bool) -> None:
        self._read(path, start, torn_is_end=last)

    def _read(self, path: str, start: int, *, torn_is_end: bool) -> set[ControlType]:
        """Counts in the records from offset `start` on; returns the types of the control records met."""
        met = set()
        snapshot = path.endswith(layout.KRAFT_SNAPSHOT)
        size = self._files.file_size(path)
        with open_input(path) as file:
            try:
                for position, header, batch in batches(file, size):
                    if not crc_matches(header, batch):
                        is_last = position + header.size == size
                        raise NoBatch(position, "a batch with a wrong checksum", torn=is_last)
                    if not snapshot:
                        if header.last_offset < start:
                            continue
                        if header.base_offset > self.next_offset:
                            raise AdoptionError(
                                f"{path}: offsets {self.next_offset} to {header.base_offset} are missing"
                            )
                        self.next_offset = header.next_offset
                    for record in iter_records(bytes(batch)):
                        if header.control:
                            met.add(control_type(record.key))
                        elif record.offset >= start:
                            self._apply(record.value or b"")
            except NoBatch as error:
                if not (torn_is_end and error.torn):
                    raise AdoptionError(f"{path}: byte {error.position}: {error}") from None
            except (CorruptBatchError, MalformedError, UnsupportedVersionError, UnknownRecord) as error:
                raise AdoptionError(f"{path}: {error}") from None
        return met

    def _apply(self, value: bytes) -> None:
        message = decode_record(value)
        if message is not None:
            self.state.apply(message)
