"""A segment as a cleaning reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kwire.ports.files import FileSystem
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import BatchHeader
from kwire.storage import layout
from kwire.storage.batch_walk import verified
from kwire.storage.segment import Segment

RECORDS_PER_STEP = 75
"""How many records of one batch are gone through before somebody else may have the interpreter."""


class Source(NamedTuple):
    """One of the log's segments, and what was so when the cleaning began."""

    segment: Segment
    end_offset: int
    """Where the next segment begins."""

    def batches(self, files: FileSystem, window: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """All batches, each verified: a rewritten batch gets a new CRC, which must not stand for damaged bytes.

        For a worker thread. Raises CorruptBatchError, OSError.
        """
        path = self.segment.path(layout.LOG)
        size = self.segment.size
        file = files.open(path)
        reached = 0
        for position, header, batch in verified(file, 0, size, window):
            yield header, batch
            reached = position + header.size
        if reached < size:
            raise CorruptBatchError(ErrorCode.CORRUPT_MESSAGE, f"{path} has no whole batch at {reached}")
