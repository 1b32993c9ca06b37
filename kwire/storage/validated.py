"""What validation hands to the log: batches ready to append, and how their headers are rewritten."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import InvalidBatch
from kwire.protocol.records.crc import Buffer
from kwire.protocol.records.header import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    PREFIX_SIZE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_header,
    seal,
)

if TYPE_CHECKING:
    from kwire.config.topic import LogConfig

# The attribute bits that mean something. A rewritten header keeps no other.
_FLAGS: Final = CODEC_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG


class Origin(Enum):
    """Who appends, and thereby what must be checked."""

    CLIENT = "client"
    """A produce request: everything is checked."""
    COORDINATOR = "coordinator"
    """This broker's own coordinators, which may write control batches and batches without sequence."""
    TIERING = "tiering"
    """Remote log metadata: without them nothing is deleted here, so that they go on when a volume is full."""
    REPLICATION = "replication"
    """A follower's append of what its leader has validated."""


class ValidatedBatch(NamedTuple):
    """A batch that may be appended. Its base offset (0) and leader epoch are set when it is.

    In format v2 a leader's append is always one batch.
    """

    header: BatchHeader
    parts: tuple[Buffer, ...]
    """Everything after the first 16 bytes."""
    log_append_time: int = -1
    """The time (ms) given to every record where the topic is of LogAppendTime, else -1."""


def as_it_is(header: BatchHeader, batch: memoryview) -> ValidatedBatch:
    """The batch as it came, its records' times those of its producer."""
    return tuple.__new__(ValidatedBatch, (header, (batch[PREFIX_SIZE:],), -1))


def with_append_time(header: BatchHeader, batch: memoryview, now_ms: int) -> ValidatedBatch:
    """The batch as one of LogAppendTime, all its records of the time `now_ms`."""
    if header.log_append_time and header.max_timestamp == now_ms:
        return ValidatedBatch(header, (batch[PREFIX_SIZE:],), now_ms)
    return _resealed(header, batch, header.attributes & _FLAGS | LOG_APPEND_TIME_FLAG, now_ms, now_ms)


def with_max_timestamp(header: BatchHeader, batch: memoryview, max_timestamp: int) -> ValidatedBatch:
    """The batch as one of CreateTime whose latest record is of this time."""
    attributes = header.attributes & _FLAGS & ~LOG_APPEND_TIME_FLAG
    return _resealed(header, batch, attributes, max_timestamp, -1)


def _resealed(
    header: BatchHeader, batch: memoryview, attributes: int, max_timestamp: int, log_append_time: int
) -> ValidatedBatch:
    """The batch with another time and a new CRC; the records stay where they are."""
    records = batch[HEADER_SIZE:]
    head = seal(header._replace(attributes=attributes, max_timestamp=max_timestamp), records)
    sealed = read_header(head)
    return ValidatedBatch(sealed, (head[PREFIX_SIZE:], records), log_append_time)


def check_size(size: int, config: LogConfig) -> None:
    """InvalidBatch if the batch is too large: MESSAGE_TOO_LARGE for its topic, RECORD_LIST_TOO_LARGE for a segment."""
    if size > config.max_message_bytes:
        raise InvalidBatch(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append is {size} bytes which exceeds the maximum configured value of "
            f"{config.max_message_bytes}.",
        )
    if size > config.segment_bytes:
        raise InvalidBatch(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size} bytes in append, which exceeds the maximum configured segment size of "
            f"{config.segment_bytes}.",
        )
