"""The 61-byte header of a record batch, and walking from batch to batch in a buffer."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error
from typing import Final, NamedTuple

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.crc import Buffer, crc32c
from kwire.protocol.records.errors import CorruptBatchError

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Bytes of base offset and batch length, which the batch length does not count."""
PREFIX_SIZE: Final = 16
"""Bytes of base offset, batch length and leader epoch: what a leader may set without a new CRC."""
CRC_START: Final = 21
"""The first byte (the attributes) that the CRC covers."""
FLAGS_AT: Final = 22
"""The byte of the attributes that says all that is known of them."""
MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
MAX_SEQUENCE: Final = 0x7FFFFFFF

# The smallest batch length of any message format (v0 has 14 bytes of overhead), and the bytes up to the magic.
_MIN_LENGTH_OF_ANY_FORMAT: Final = 14
_UP_TO_MAGIC: Final = 17
_MAGIC_AT, _PRODUCER = 16, slice(43, 53)

_HEADER: Final = Struct(">qiibIhiqqqhii")
unpack_header: Final = _HEADER.unpack_from
"""(buffer, position=0) -> the fields of a `BatchHeader`; for who has seen that they are there."""
_PREFIX: Final = Struct(">qii")
_LENGTH: Final = Struct(">i")


def said_to_be_transactional(batch: Buffer) -> bool:
    """Whether bytes, which may be no batch at all, say that they are one of a transaction."""
    return len(batch) > FLAGS_AT and bool(batch[FLAGS_AT] & TRANSACTIONAL_FLAG) and batch[_MAGIC_AT] == MAGIC


def producer_said(batch: Buffer) -> bytes:
    """Id and epoch of the producer that a batch names, as they stand in it; less where bytes are no batch."""
    return bytes(batch[_PRODUCER])


class BatchHeader(NamedTuple):
    """The header's fields as they are on the wire, and what follows from them."""

    base_offset: int
    batch_length: int
    """Bytes of the batch after this field."""
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # a tuple's method of that name is not missed

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def codec(self) -> Compression:
        """CorruptBatchError if the attributes name none."""
        code = self.attributes & CODEC_MASK
        if code > 4:
            raise CorruptBatchError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {code}")
        return Compression(code)

    @property
    def log_append_time(self) -> bool:
        """The broker set the time: every record has max_timestamp, whatever its delta says."""
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def control(self) -> bool:
        """The batch holds a control record (such as a transaction marker), never shown to applications."""
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        """base_timestamp is the time from which compaction may drop the batch's tombstones and markers."""
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def last_offset(self) -> int:
        """Inclusive."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Inclusive; sequences wrap from 2^31 - 1 to 0. NO_SEQUENCE where the batch has none."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_sequence(self.base_sequence, self.last_offset_delta)


def add_sequence(sequence: int, increment: int) -> int:
    """`sequence + increment` in [0, 2^31), wrapping to 0."""
    total = sequence + increment
    return total - MAX_SEQUENCE - 1 if total > MAX_SEQUENCE else total


def subtract_sequence(sequence: int, decrement: int) -> int:
    """`sequence - decrement` in [0, 2^31), wrapping to 2^31 - 1."""
    total = sequence - decrement
    return total + MAX_SEQUENCE + 1 if total < 0 else total


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, unchecked. CorruptBatchError if fewer than 61 bytes are there."""
    try:
        return tuple.__new__(BatchHeader, _HEADER.unpack_from(buffer, position))  # _make, without its second look
    except error:
        raise CorruptBatchError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch is corrupt (the size {len(buffer) - position} is smaller than the minimum allowed "
            f"overhead {HEADER_SIZE})",
        ) from None


write_prefix = _PREFIX.pack
"""(base offset, batch length, leader epoch) -> the first 16 bytes of a batch, which its CRC does not cover."""


def seal(header: BatchHeader, records: Buffer) -> bytes:
    """The 61 bytes of `header` with the CRC of these records."""
    head = _HEADER.pack(*header)
    checksum = crc32c(records, crc32c(head[CRC_START:]))
    return head[:17] + checksum.to_bytes(4, "big") + head[CRC_START:]


def crc_matches(header: BatchHeader, batch: Buffer) -> bool:
    """Whether the CRC is that of `batch` (the bytes of just this batch)."""
    return crc32c(memoryview(batch)[CRC_START:]) == header.crc


def next_batch_size(buffer: Buffer, position: int) -> int | None:
    """Bytes of the batch at `position`; None where the rest of the buffer holds no whole batch.

    CorruptBatchError (CORRUPT_MESSAGE) where a length or magic is impossible. Magic 0 and 1 pass: it is for the
    caller to refuse them.
    """
    remaining = len(buffer) - position
    if remaining < LOG_OVERHEAD:
        return None
    length: int = _LENGTH.unpack_from(buffer, position + 8)[0]
    if length < _MIN_LENGTH_OF_ANY_FORMAT:
        raise CorruptBatchError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_MIN_LENGTH_OF_ANY_FORMAT})",
        )
    if remaining < _UP_TO_MAGIC:
        return None
    magic = buffer[position + 16]
    if magic > MAGIC:
        raise CorruptBatchError(
            ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic - 256 if magic > 127 else magic}"
        )
    size = length + LOG_OVERHEAD
    return size if size <= remaining else None


def iter_batches(buffer: Buffer) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The whole v2 batches of a buffer, in order; what is left at the end and is no whole batch is not yielded.

    CorruptBatchError (CORRUPT_MESSAGE) for an impossible length, a magic other than 2. The CRC is not checked.
    """
    view = memoryview(buffer)
    position = 0
    while (size := next_batch_size(view, position)) is not None:
        header = read_header(view, position) if size >= HEADER_SIZE else None
        if header is None or header.magic != MAGIC:
            raise CorruptBatchError(ErrorCode.CORRUPT_MESSAGE, f"No record batch of format v2 at byte {position}")
        yield header, view[position : position + size]
        position += size
