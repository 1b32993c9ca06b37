"""Which copies in remote storage go (retention.ms, retention.bytes, DeleteRecords), and where the log begins then."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kwire.storage.tiered.remote_segment import RemoteSegment, SegmentState
from kwire.storage.tiered.remote_segments import Epochs, RemoteSegments, in_history


@dataclass(frozen=True, slots=True)
class Retention:
    """What decides. -1 stands for no limit."""

    retention_ms: int
    retention_bytes: int
    now_ms: int
    log_start_offset: int
    only_local_bytes: int
    """Of the segments that are not in remote storage."""


@dataclass(slots=True)
class Expiry:
    """What is to be done: first the log's start moves, then the copies are deleted."""

    doomed: list[RemoteSegment] = field(default_factory=list)
    log_start_offset: int | None = None
    """Where the log begins from now on; None where nothing expired."""


def expire(
    segments: RemoteSegments, epochs: Epochs, retention: Retention, being_copied: Collection[bytes] = ()
) -> Expiry:
    """Looks through all copies of a partition that this broker leads. `being_copied`: ids of copies under way here."""
    expiry = Expiry()
    over = -1
    if retention.retention_bytes >= 0:
        over = segments.size(epochs) + retention.only_local_bytes - retention.retention_bytes
    for segment in _leftovers(segments, epochs, retention, being_copied):
        expiry.doomed.append(segment)
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED and in_history(segment, epochs):
            over -= segment.size
    doomed = {segment.id for segment in expiry.doomed}
    oldest_kept = retention.now_ms - retention.retention_ms if retention.retention_ms >= 0 else None
    for segment in segments.readable(epochs):
        if segment.id in doomed:
            continue
        too_old = oldest_kept is not None and segment.max_timestamp <= oldest_kept
        if not too_old and over < segment.size:
            break
        expiry.doomed.append(segment)
        over -= segment.size
        expiry.log_start_offset = max(segment.end_offset + 1, expiry.log_start_offset or 0)
    return expiry


def _leftovers(
    segments: RemoteSegments, epochs: Epochs, retention: Retention, being_copied: Collection[bytes]
) -> Sequence[RemoteSegment]:
    """Copies and deletions that a crash or a failure interrupted; and what the log has left behind.

    Only this broker copies, since it leads: a copy that has begun and is not under way here never ends. Copies of
    another history stay as long as theirs might come back; those from before all that this history knows do not.
    """
    earliest_epoch = epochs[0][0] if epochs else None
    found = []
    for segment in segments.in_any_order():
        if segment.state is SegmentState.COPY_SEGMENT_STARTED:
            gone = segment.id not in being_copied
        elif segment.state is SegmentState.DELETE_SEGMENT_STARTED:
            gone = True
        elif earliest_epoch is None:
            gone = False
        else:
            latest = segment.epochs[-1][0]
            gone = latest < earliest_epoch or (
                latest == earliest_epoch and segment.end_offset < retention.log_start_offset
            )
        if gone:
            found.append(segment)
    return sorted(found, key=lambda segment: (segment.start_offset, segment.event_ms))
