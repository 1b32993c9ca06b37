"""What worker threads do for a move. OSError is of the target; what cannot be read of the source is `Unreadable`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kwire.ports.files import File, FileSystem
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import HEADER_SIZE, LOG_OVERHEAD, crc_matches, iter_batches, read_header
from kwire.storage import checkpoints, layout
from kwire.storage.moving.future import FutureLog, SegmentCopy
from kwire.storage.segment import Segment
from kwire.storage.segment_indexes import SegmentIndexes


class Unreadable(Exception):
    """The source can't be read; `error` says why."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def begin(files: FileSystem, folder: str, topic_id: bytes | None) -> None:
    """Makes the folder of a future log."""
    files.make_dirs(folder)
    if topic_id is not None:
        data = checkpoints.encode_partition_metadata(uuids.to_text(topic_id))
        files.write(f"{folder}/{layout.PARTITION_METADATA}", data)


def copy_batches(source: File, target: File, start: int, end: int, limit: int) -> tuple[int, int]:
    """Copies whole batches from `start` on, about `limit` bytes and not beyond `end`; at least one.

    What the target has there already is left as it is if it is the same, else replaced with all that follows. Returns
    the bytes and the offset after the last batch. Raises CorruptBatchError, Unreadable, OSError.
    """
    data, size, next_offset = _whole_batches(source, start, end, limit)
    there = target.pread(size, start)
    if there != data[:size]:
        if target.size() > start:
            target.truncate(start)
        target.pwrite([data[:size]], start)
    return size, next_offset


def _whole_batches(source: File, start: int, end: int, limit: int) -> tuple[memoryview, int, int]:
    data = _read(source, min(limit, end - start), start)
    if len(data) >= HEADER_SIZE and (first := read_header(data).batch_length + LOG_OVERHEAD) > len(data):
        data = _read(source, min(first, end - start), start)
    size = next_offset = 0
    for header, batch in iter_batches(data):
        if not crc_matches(header, batch):
            raise CorruptBatchError(
                ErrorCode.CORRUPT_MESSAGE, f"{source.path} has a damaged batch at {start + size}, its CRC is wrong"
            )
        size += header.size
        next_offset = header.next_offset
    if not size:
        raise CorruptBatchError(ErrorCode.CORRUPT_MESSAGE, f"{source.path} has no whole batch at {start}")
    return memoryview(data), size, next_offset


def _read(source: File, size: int, position: int) -> bytes:
    try:
        return source.pread(size, position)
    except OSError as error:
        raise Unreadable(error) from error


def complete(files: FileSystem, copy: SegmentCopy, prefix: str) -> None:
    """Copies what belongs to a sealed segment: its indexes, and when it was written, which may decide its retention."""
    segment = copy.source
    if copy.file.size() > segment.size:  # an interrupted move left more
        copy.file.truncate(segment.size)
    try:
        modified_ms = segment.modified_ms()
        found = [(suffix, _content(files, segment.path(suffix))) for suffix in layout.INDEX_SUFFIXES]
    except OSError as error:
        raise Unreadable(error) from error
    for suffix, data in found:
        if data is not None:
            files.write(prefix + suffix, data)
        else:  # an interrupted move may have left one, of what was here before it was compacted
            with suppress(FileNotFoundError):
                files.remove(prefix + suffix)
    files.set_modified_ms(prefix + layout.LOG, modified_ms)


def _content(files: FileSystem, path: str) -> bytes | None:
    """None where there is none: indexes are built when they are missed, and few segments have aborted transactions."""
    with suppress(FileNotFoundError):
        return files.read(path)
    return None


def load_indexes(segment: Segment) -> SegmentIndexes:
    """Those of the source."""
    try:
        return segment.load_indexes(segment.files.open(segment.path(layout.LOG)))
    except OSError as error:
        raise Unreadable(error) from error


def copy_snapshots(files: FileSystem, paths: Sequence[tuple[str, str]]) -> None:
    """(of the log, of the copy)."""
    for source, target in paths:
        try:
            data = _content(files, source)
        except OSError as error:
            raise Unreadable(error) from error
        if data is not None:
            files.write(target, data)


def drop(files: FileSystem, prefixes: Sequence[str]) -> None:
    """Removes the copies of segments."""
    for prefix in prefixes:
        for suffix in layout.SEGMENT_SUFFIXES:
            with suppress(FileNotFoundError):
                files.remove(prefix + suffix)


@dataclass(slots=True)
class Settling:
    """What a copy has that is to be brought onto the disk."""

    folder: str
    names: Collection[str]
    """Of all files that belong to it."""
    epochs: list[tuple[int, int]]

    @classmethod
    def of(cls, future: FutureLog) -> Settling:
        names = {layout.PARTITION_METADATA, layout.LEADER_EPOCHS}
        for base_offset in future.copies:
            names |= {layout.segment_name(base_offset, suffix) for suffix in layout.SEGMENT_SUFFIXES}
        names |= {layout.segment_name(offset, layout.SNAPSHOT) for offset in future.snapshots}
        return cls(future.dir, names, future.source.epochs.entries())


def settle(files: FileSystem, settling: Settling, root: str) -> None:
    """Brings the copy onto the disk, and removes what an interrupted move left besides."""
    folder = settling.folder
    files.write(f"{folder}/{layout.LEADER_EPOCHS}", checkpoints.encode_epochs(settling.epochs))
    for name in files.list(folder):
        if name in settling.names:
            files.open(f"{folder}/{name}").sync()
        else:
            files.remove(f"{folder}/{name}")
    files.sync_dir(folder)
    files.sync_dir(root)
