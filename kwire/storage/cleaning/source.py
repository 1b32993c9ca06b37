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


class Source(NamedTuple):
    """One of the log's segments as it was when the cleaning began."""

    folder: str
    base_offset: int
    size: int
    end_offset: int
    """Where the next segment begins."""

    def path(self, suffix: str) -> str:
        return f"{self.folder}/{layout.segment_name(self.base_offset, suffix)}"

    def batches(self, files: FileSystem, window: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """All batches, each verified: a rewritten batch gets a new CRC, which must not stand for damaged bytes.

        Raises CorruptBatchError, OSError.
        """
        path = self.path(layout.LOG)
        file = files.open(path)
        reached = 0
        for position, header, batch in verified(file, 0, self.size, window):
            yield header, batch
            reached = position + header.size
        if reached < self.size:
            message = f"{path} has no batch with a right checksum at byte {reached}"
            raise CorruptBatchError(ErrorCode.CORRUPT_MESSAGE, message)
