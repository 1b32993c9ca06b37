"""What a follower gets from its leader: checked before it is written, and cut so that it fits into segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kwire.ports.files import Buffer
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import BatchHeader, crc_matches
from kwire.storage.offset_index import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from kwire.storage.log import Log


class Placed(NamedTuple):
    """A batch that has its offset, ready to be written."""

    header: BatchHeader
    base_offset: int
    buffers: list[Buffer]


class UnexpectedAppendOffset(KafkaError):
    """A follower was given batches that begin before its log's end."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


def check_received(log: Log, batches: list[Placed]) -> None:
    """Raises UnexpectedAppendOffset where the offsets do not ascend from the log's end on, and CorruptBatchError."""
    expected = log.log_end_offset
    for header, base_offset, (batch,) in batches:
        if base_offset < expected:
            raise UnexpectedAppendOffset(
                f"Unexpected offset in append to {log.name}: {base_offset} is less than the next offset {expected}. "
                f"The log starts at {log.log_start_offset}",
                batches[0].base_offset,
                batches[-1].header.last_offset,
            )
        if not crc_matches(header, batch):
            raise CorruptBatchError(
                ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt in topic partition {log.name} at {base_offset}"
            )
        expected = header.next_offset


def fitting(log: Log, batches: list[Placed]) -> list[Placed]:
    """As many of the batches as one segment takes: what is left of the active one, or a new one."""
    first = batches[0].header
    room = log.config.segment_bytes - log.segments.active.size
    if first.size > room:
        room = log.config.segment_bytes
    count = 0
    for header, _, _ in batches:
        room -= header.size
        if count and (room < 0 or header.last_offset - first.base_offset > MAX_RELATIVE_OFFSET):
            break
        count += 1
    return batches[:count]
