"""The files of a log, line by line: segments, indexes, producer snapshots, checkpoints.

Every line is a mapping whose first item names its kind: batch, record, entry, producer, transaction, epoch, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import TYPE_CHECKING, Any, BinaryIO

from kwire.cli.log.decoded import Decode, decoder_of
from kwire.ports.input import open_input
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import HEADER_SIZE, MAGIC, BatchHeader, crc_matches, read_header
from kwire.storage import checkpoints, layout
from kwire.storage.offset_index import OffsetIndex
from kwire.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot
from kwire.storage.reserve import is_padding
from kwire.storage.sparse_index import CorruptIndex
from kwire.storage.time_index import TimeIndex
from kwire.storage.transaction_index import decode_transactions

if TYPE_CHECKING:
    from kwire.ports.files import FileSystem

Line = dict[str, Any]


class Damage(Exception):
    """The rest of a file cannot be read; what came before it is good."""


def files_in(files: FileSystem, path: str) -> Iterator[str]:
    """The file itself; of a folder, the files of a log in it and in the partitions' folders in it, in order."""
    try:
        names = files.list(path)
    except NotADirectoryError:
        yield path
        return
    for name in names:
        if _kind(name) is not None:
            yield f"{path.rstrip('/')}/{name}"
        elif layout.parse_partition_dir(name) is not None:
            yield from files_in(files, f"{path.rstrip('/')}/{name}")


def dump_file(files: FileSystem, path: str, records: bool) -> Iterator[Line]:
    """The lines of one file. Raises Damage, and OSError."""
    name = path.rpartition("/")[2]
    kind = _kind(name)
    if kind is None:
        raise Damage(f"not a file of a log: it should end in {', '.join(layout.SEGMENT_SUFFIXES)} or .snapshot")
    if kind in (layout.LOG, layout.KRAFT_SNAPSHOT):
        yield from _segment(files.absolute(path), files.file_size(path), records)
        return
    parsed = layout.parse_segment_name(name)
    try:
        yield from _READERS[kind](files.read(path), parsed[0] if parsed else 0)
    except (CorruptIndex, CorruptSnapshotError, checkpoints.CorruptCheckpoint) as error:
        raise Damage(str(error)) from error


def _kind(name: str) -> str | None:
    """The name of a checkpoint, or the suffix of a segment's file; None where it is no file of a log."""
    name = layout.live_name(name)
    if name in _READERS:
        return name
    if layout.parse_kraft_snapshot(name) is not None:
        return layout.KRAFT_SNAPSHOT
    parsed = layout.parse_segment_name(name)
    return parsed[1] if parsed is not None and (parsed[1] == layout.LOG or parsed[1] in _READERS) else None


def _segment(path: str, end: int, records: bool) -> Iterator[Line]:
    folder = layout.parse_partition_dir(path.split("/")[-2])
    decode = decoder_of(folder.topic) if folder is not None and records else None
    with BufferedReader(open_input(path)) as file:
        yield from _batches(file, end, records, decode)


def _batches(file: BinaryIO, end: int, records: bool, decode: Decode | None) -> Iterator[Line]:
    position = 0
    while position < end:
        head = file.read(HEADER_SIZE)
        if is_padding(head):
            yield {"preallocated": end - position, "position": position}
            return
        if len(head) < HEADER_SIZE:
            raise Damage(f"a torn batch of {end - position} bytes at position {position}")
        header = read_header(head)
        if header.magic != MAGIC or header.size < HEADER_SIZE:
            raise Damage(f"no batch of format v2 at position {position} (magic {header.magic}, size {header.size})")
        if position + header.size > end:
            raise Damage(f"a torn batch at position {position}: {end - position} of {header.size} bytes")
        batch = head + file.read(header.size - HEADER_SIZE)
        sound = crc_matches(header, batch)
        yield _batch(header, position, sound)
        if not sound:
            raise Damage(f"the batch at position {position} has a wrong checksum")
        if records:
            yield from _records(header, batch, decode)
        position += header.size


def _batch(header: BatchHeader, position: int, sound: bool) -> Line:
    codec = header.attributes & 7
    line: Line = {
        "batch": header.base_offset,
        "last": header.last_offset,
        "position": position,
        "size": header.size,
        "count": header.count,
        "codec": _CODECS[codec] if codec < len(_CODECS) else codec,
        "timestamp": header.max_timestamp,
        "timestamp_type": "log_append" if header.log_append_time else "create",
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "transactional": header.transactional,
        "control": header.control,
        "crc": f"{header.crc:08x}",
        "crc_valid": sound,
    }
    if header.has_delete_horizon:
        line["delete_horizon"] = header.base_timestamp
    return line


def _records(header: BatchHeader, batch: bytes, decode: Decode | None) -> Iterator[Line]:
    from kwire.protocol.records.control import control_type
    from kwire.protocol.records.record import iter_records

    try:
        for record in iter_records(batch):
            line: Line = {"record": record.offset, "timestamp": record.timestamp}
            if header.control:
                line["control"] = control_type(record.key).name.lower()
            elif decode is not None:
                yield line | decode(record)
                continue
            yield line | {"key": record.key, "value": record.value, "headers": record.headers}
    except CorruptBatchError as error:
        raise Damage(f"the batch at offset {header.base_offset}: {error.message}") from error


def _offset_index(data: bytes, base_offset: int) -> Iterator[Line]:
    index = OffsetIndex.decode(base_offset, _without_preallocated(data, OffsetIndex.entry_size))
    for number in range(len(index)):
        yield {"offset": index.entry(number).offset, "position": index.entry(number).position}


def _time_index(data: bytes, base_offset: int) -> Iterator[Line]:
    index = TimeIndex.decode(base_offset, _without_preallocated(data, TimeIndex.entry_size))
    for number in range(len(index)):
        yield {"timestamp": index.entry(number).timestamp, "offset": index.entry(number).offset}


def _transactions(data: bytes, base_offset: int) -> Iterator[Line]:
    for transaction in decode_transactions(data, base_offset):
        yield {
            "aborted_producer_id": transaction.producer_id,
            "first_offset": transaction.first_offset,
            "last_offset": transaction.last_offset,
            "last_stable_offset": transaction.last_stable_offset,
        }


def _snapshot(data: bytes, base_offset: int) -> Iterator[Line]:
    for producer in decode_snapshot(data):
        yield {
            "producer_id": producer.producer_id,
            "epoch": producer.epoch,
            "last_sequence": producer.last_sequence,
            "last_offset": producer.last_offset,
            "offset_delta": producer.last_offset_delta,
            "timestamp": producer.last_timestamp,
            "coordinator_epoch": producer.coordinator_epoch,
            "transaction_first_offset": producer.txn_first_offset,
        }


def _epochs(data: bytes, base_offset: int) -> Iterator[Line]:
    for epoch, start in checkpoints.decode_epochs(data):
        yield {"leader_epoch": epoch, "start_offset": start}


def _partition_metadata(data: bytes, base_offset: int) -> Iterator[Line]:
    yield {"topic_id": checkpoints.decode_partition_metadata(data)}


def _offsets(data: bytes, base_offset: int) -> Iterator[Line]:
    for (topic, partition), offset in checkpoints.decode_offsets(data).items():
        yield {"topic": topic, "partition": partition, "offset": offset}


_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

_READERS: dict[str, Callable[[bytes, int], Iterator[Line]]] = {
    layout.OFFSET_INDEX: _offset_index,
    layout.TIME_INDEX: _time_index,
    layout.TRANSACTION_INDEX: _transactions,
    layout.SNAPSHOT: _snapshot,
    layout.LEADER_EPOCHS: _epochs,
    layout.PARTITION_METADATA: _partition_metadata,
    layout.RECOVERY_POINTS: _offsets,
    layout.HIGH_WATERMARKS: _offsets,
    layout.LOG_START_OFFSETS: _offsets,
    layout.CLEANER_OFFSETS: _offsets,
}


def _without_preallocated(data: bytes, entry_size: int) -> bytes:
    """The entries in use: the index of an active segment of Apache Kafka is followed by zeros."""
    used = len(data.rstrip(b"\0"))
    return data[: -(-used // entry_size) * entry_size]
