"""Copying one sealed segment to an object store, with all that somebody needs who has nothing else of the log."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.ports.files import File, FileSlice
from kwire.remote.object_store import ObjectStore
from kwire.storage import checkpoints, layout
from kwire.storage.producer_snapshot import encode_snapshot
from kwire.storage.segment import Segment
from kwire.storage.tiered.remote_segment import RemoteSegment, SegmentState, TopicIdPartition
from kwire.storage.tiered.remote_segments import RemoteSegments, epochs_within
from kwire.storage.timestamps import load_newest

if TYPE_CHECKING:
    from kwire.storage.log import Log


def copied_end(log: Log, segments: RemoteSegments, known: int = 0) -> int:
    """Up to here (exclusive) what the log has here is in remote storage too, which is `known` of what is before that.

    A copy behind a segment that is not there does not count: so it is where a removal of all copies was broken off.
    """
    epochs = log.epochs.entries()
    reached = max(log.local_start_offset, known)
    end = max(known, min(segments.highest_offset(epochs) + 1, reached))
    for copy in segments.readable(epochs, reached):
        if copy.start_offset > reached and _has_records(log, reached, copy.start_offset):
            break
        reached = end = copy.end_offset + 1
    return end


def _has_records(log: Log, start: int, end: int) -> bool:
    """Whether there may be any in [start, end). Compaction may have left whole segments without."""
    return any(segment.size for segment in log.segments.from_offset(start) if segment.base_offset < end)


class CopyAborted(Exception):
    """The segment is not the log's any more, or not as it was: what was begun is void."""


def candidate(log: Log, from_offset: int) -> tuple[Segment, int] | None:
    """The next segment to copy, and the offset at which the one after it begins; None where there is none.

    A sealed one that reaches beyond `from_offset`, once all its records are committed and of ended transactions.
    """
    stable = log.last_stable_offset
    for segment in log.segments.from_offset(from_offset):
        if segment is log.segments.active:
            return None
        next_offset = log.segments.end_of(log.segments.floor_number(segment.base_offset), log.log_end_offset)
        if next_offset > stable:
            return None
        if next_offset > from_offset and segment.size:
            return segment, next_offset
    return None


async def describe(
    log: Log, segment: Segment, next_offset: int, segment_id: bytes, broker_id: int, now_ms: int
) -> RemoteSegment:
    """What is to be told of the copy before it begins. Raises KAFKA_STORAGE_ERROR, CopyAborted."""
    (newest,) = await load_newest(log, [segment])
    try:
        max_timestamp = segment.newest_ms(newest)
    except FileNotFoundError:
        raise CopyAborted from None
    except OSError as error:
        raise log.failed("copy to remote storage", error) from error
    epochs = tuple(epochs_within(log.epochs.entries(), segment.base_offset, next_offset))
    if not epochs:  # the log has come to begin behind it meanwhile
        raise CopyAborted
    return RemoteSegment(
        segment_id,
        segment.base_offset,
        next_offset - 1,
        max_timestamp,
        segment.size,
        epochs,
        SegmentState.COPY_SEGMENT_STARTED,
        broker_id,
        now_ms,
        segment.has_transactions,
    )


async def upload(
    log: Log, version: int, segment: Segment, copy: RemoteSegment, of: TopicIdPartition, store: ObjectStore
) -> None:
    """Puts the segment's objects into the store; when it returns they are there, whole and durable.

    `version`: the log's when the copy was described; if it was truncated since, the copy is void. Raises CopyAborted,
    RemoteStorageError, KAFKA_STORAGE_ERROR.
    """
    entries = [entry for entry in log.epochs.entries() if entry[1] <= copy.end_offset]
    try:
        file, size = segment.file, copy.size
        objects = await log.services.executor.run(_small_objects, log, segment, file, copy.end_offset + 1)
        objects[layout.LEADER_EPOCHS] = checkpoints.encode_epochs(entries)
        for which, data in objects.items():
            await store.put(copy.key(of, which), [data])
        await store.put(copy.key(of, layout.LOG), [FileSlice(file, 0, size)])
    except FileNotFoundError:
        raise CopyAborted from None
    except OSError as error:
        raise log.failed("copy to remote storage", error) from error
    if log.version != version or log.deleted:
        raise CopyAborted


def _small_objects(log: Log, segment: Segment, file: File, next_offset: int) -> dict[str, bytes]:
    """The content of the small objects. For a worker thread. Raises OSError."""
    indexes = segment.indexes or segment.load_indexes(file)
    objects = {layout.OFFSET_INDEX: indexes.offsets.encode(), layout.TIME_INDEX: indexes.times.encode()}
    if segment.has_transactions:
        objects[layout.TRANSACTION_INDEX] = b"".join(
            transaction.encode() for transaction in segment.load_transactions()
        )
    # A log that never had a producer with an id has no snapshots.
    objects[layout.SNAPSHOT] = encode_snapshot([])
    with suppress(FileNotFoundError):
        objects[layout.SNAPSHOT] = log.services.files.read(log.producer_state.snapshot_path(next_offset))
    return objects
