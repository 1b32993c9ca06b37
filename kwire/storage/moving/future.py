"""The copy of a log in another log dir, before it takes the log's place."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from kwire.ports.files import File
from kwire.storage import layout
from kwire.storage.log import Log
from kwire.storage.log_dir import LogDir
from kwire.storage.segment import Segment
from kwire.storage.segments import Segments


@dataclass(slots=True)
class SegmentCopy:
    """How far one segment is copied: whole batches only."""

    source: Segment
    version: int
    """Of the source when its copy began: the copy of a segment that was truncated or removed since is void."""
    file: File
    size: int = 0
    next_offset: int = 0
    """Of the batches copied."""
    complete: bool = False
    """Whether the segment is sealed, and its indexes are copied too."""

    @property
    def void(self) -> bool:
        return self.version != self.source.version


class FutureLog:
    """A future log. For the event loop's thread."""

    def __init__(self, source: Log, log_dir: LogDir, folder: str) -> None:
        """`folder` exists in `log_dir`."""
        self.source = source
        """The log that is moved."""
        self.source_gone = False
        """Whether the source's log dir has failed: then the move waits for the next start."""
        self.log_dir = log_dir
        self.dir = folder
        self.key = source.key
        self.copies: dict[int, SegmentCopy] = {}
        """By the base offset of the segment."""
        self.recovery_point = 0
        """Up to here (exclusive) the copy is on disk, with all that belongs to it."""
        self.settled = False
        """Whether that is so since the log was last truncated."""
        self.epochs: list[tuple[int, int]] = []
        """The leader epochs that the copy's file has."""
        self.snapshots: set[int] = set()
        """The producers' snapshots that are copied."""
        self.scope = trio.CancelScope()
        """Ends the move."""
        self.idle = trio.Event()
        """Set while nobody works on the copy."""
        self.idle.set()

    def __repr__(self) -> str:
        return f"FutureLog({self.dir}, up to {self.end_offset})"

    @property
    def size(self) -> int:
        """Bytes of all .log files."""
        return sum(copy.size for copy in self.copies.values())

    @property
    def end_offset(self) -> int:
        """Everything that the log has before this offset is copied."""
        end = self.source.segments.first.base_offset
        for segment in self.source.segments:
            copy = self.copies.get(segment.base_offset)
            if copy is None or copy.source is not segment or copy.void:
                break
            end = max(segment.base_offset, copy.next_offset)
            if copy.size < segment.size:
                break
        return end

    def unsettle(self, offset: int) -> None:
        """What the copy has from `offset` on is void."""
        self.settled = False
        self.recovery_point = min(self.recovery_point, offset)
        self.snapshots.clear()

    # What checkpoints say of it

    @property
    def segments(self) -> Segments:
        """It has those of the log."""
        return self.source.segments

    @property
    def tiered(self) -> bool:
        return self.source.tiered

    @property
    def log_start_offset(self) -> int:
        return self.source.log_start_offset

    @property
    def high_watermark(self) -> int:
        return min(self.source.high_watermark, self.end_offset)

    def path(self, base_offset: int, suffix: str) -> str:
        """Of a segment's file."""
        return f"{self.dir}/{layout.segment_name(base_offset, suffix)}"
