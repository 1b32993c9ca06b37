"""What the leader does with a produced blob before the append.

`first_batch` finds the one batch in the blob; `check` looks at its header and CRC. That is enough for most batches:
they are passed on as they came, and only their first 16 bytes are set anew. The records themselves are walked where
something depends on them: the keys for a compacted topic, the timestamps where the header alone cannot clear them,
all of it where the topic wants another codec. `check` then returns a `PendingWalk`, so that a caller may run a large
one on a worker thread. Everything here is pure: bytes, configuration and the time go in.

What Kafka checks and this does not, as long as nothing else calls for a walk: whether the records of a larger batch fit
their count and their lengths, and whether compressed data can be decompressed. The CRC has been verified by then, so
that such a batch left its producer as it is.

Where the header's max_timestamp is not trusted (a walk was made) it is corrected from the records, as Kafka does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import CorruptBatchError, InvalidBatch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.crc import Buffer, crc32c
from kwire.protocol.records.header import (
    CODEC_MASK,
    CONTROL_FLAG,
    CRC_START,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    next_batch_size,
    read_header,
    unpack_header,
)
from kwire.protocol.records.record import MIN_RECORD_SIZE
from kwire.protocol.records.varint import read_varint
from kwire.storage.record_walk import PendingWalk
from kwire.storage.validated import (
    Origin,
    ValidatedBatch,
    as_it_is,
    check_size,
    with_append_time,
)

if TYPE_CHECKING:
    from kwire.config.topic import LogConfig

_ZSTD_SINCE_VERSION: Final = 7

# Uncompressed batches of up to so many records always have the lengths of their records followed: it costs little, and
# it is with such batches that a new client is tried out.
_SMALL_BATCH: Final = 8

# What the data of a codec begins with. Snappy is absent: raw snappy begins with anything.
_FRAME_STARTS: Final[dict[int, bytes]] = {
    Compression.GZIP: b"\x1f\x8b",
    Compression.LZ4: b"\x04\x22\x4d\x18",
    Compression.ZSTD: b"\x28\xb5\x2f\xfd",
}


def first_batch(records: Buffer | None, produce_version: int | None = None) -> tuple[BatchHeader, memoryview]:
    """The header and the bytes of the one batch in a produced blob; what is left over and no whole batch is cut off.

    This is what Kafka checks of a produce request before it looks at the partition. `produce_version` is the version
    of that request. InvalidBatch: INVALID_RECORD if there is no batch, more than one, or one of magic 0 or 1;
    CORRUPT_MESSAGE for an impossible length or magic; UNSUPPORTED_COMPRESSION_TYPE for zstd before version 7.
    """
    if records is None:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "There are no records")
    view = memoryview(records)
    try:
        size = len(view)
        header = tuple.__new__(BatchHeader, unpack_header(view)) if size >= HEADER_SIZE else None
        if header is None or header.magic != MAGIC or header.batch_length + LOG_OVERHEAD != size:
            header, view = _cut(view, produce_version)
    except CorruptBatchError as failure:
        raise InvalidBatch(failure.code, failure.message) from failure
    if produce_version is not None and produce_version < _ZSTD_SINCE_VERSION:
        _check_zstd(header, produce_version)
    return header, view


def _cut(view: memoryview, produce_version: int | None) -> tuple[BatchHeader, memoryview]:
    size = next_batch_size(view, 0)
    if size is None:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "Produce requests must have at least one record batch a partition")
    if view[16] != MAGIC:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "Produce requests may contain record batches with magic 2 only")
    if size < HEADER_SIZE:
        raise InvalidBatch(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch is corrupt (the size {size} is smaller than the minimum allowed overhead {HEADER_SIZE})",
        )
    header = read_header(view)
    if produce_version is not None and produce_version < _ZSTD_SINCE_VERSION:
        _check_zstd(header, produce_version)
    if next_batch_size(view, size) is not None:
        raise InvalidBatch(ErrorCode.INVALID_RECORD, "Produce requests must have exactly one record batch a partition")
    return header, view[:size]


def _check_zstd(header: BatchHeader, produce_version: int) -> None:
    if header.attributes & CODEC_MASK == Compression.ZSTD:
        raise InvalidBatch(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {produce_version} are not allowed to use ZStandard compression",
        )


def check(
    header: BatchHeader,
    batch: memoryview,
    config: LogConfig,
    now_ms: int,
    *,
    origin: Origin = Origin.CLIENT,
    name: str = "",
) -> ValidatedBatch | PendingWalk:
    """Checks what the header and the CRC tell; the result is ready to append, or says that the records must be walked.

    `header` and `batch` are `first_batch`'s. `name` is `topic-partition`, for messages. InvalidBatch: INVALID_RECORD
    (base offset, counts, control batch, sequence), MESSAGE_TOO_LARGE (max.message.bytes), CORRUPT_MESSAGE (CRC),
    UNKNOWN_SERVER_ERROR (an unknown codec), RECORD_LIST_TOO_LARGE (segment.bytes).
    """
    client = origin is Origin.CLIENT
    if client and header.base_offset:
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"The baseOffset of the record batch in the append to {name} should be 0, but it is {header.base_offset}",
        )
    size = len(batch)
    if size > config.max_message_bytes:
        check_size(size, config)
    if crc32c(batch[CRC_START:]) != header.crc:
        raise InvalidBatch(
            ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt (stored crc = {header.crc}) in topic partition {name}."
        )
    attributes = header.attributes
    codec = attributes & CODEC_MASK
    if codec > Compression.ZSTD:
        raise InvalidBatch(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec}")
    count = header.count
    if client:
        if not count == header.last_offset_delta + 1 > 0:
            raise _bad_count(header, name)
        if attributes & CONTROL_FLAG:
            raise InvalidBatch(
                ErrorCode.INVALID_RECORD,
                f"Clients are not allowed to write control records in topic partition {name}",
            )
        if header.base_sequence < 0 and header.producer_id >= 0:
            raise InvalidBatch(
                ErrorCode.INVALID_RECORD,
                f"Invalid sequence number {header.base_sequence} in record batch with producerId "
                f"{header.producer_id} in topic partition {name}",
            )
    create_time = config.message_timestamp_type == "CreateTime"
    compression_type = config.compression_type
    target = codec if compression_type == "producer" else _TARGETS[compression_type]
    latest = header.max_timestamp
    if (
        target != codec
        or config.compacted
        or attributes & LOG_APPEND_TIME_FLAG
        # The header names the first and the latest timestamp. The earliest it does not name, so that a limit into the
        # past (there is none by default) always means a walk.
        or (
            create_time
            and (
                latest > now_ms + config.message_timestamp_after_max_ms
                or latest < header.base_timestamp
                or config.message_timestamp_before_max_ms <= now_ms
            )
        )
        or not (
            size - HEADER_SIZE >= MIN_RECORD_SIZE * count
            if count > _SMALL_BATCH and not codec
            else _plausible(header, batch)
        )
    ):
        return PendingWalk(header, batch, config, Compression(target), now_ms, name)
    if size > config.segment_bytes:
        check_size(size, config)
    return as_it_is(header, batch) if create_time else with_append_time(header, batch, now_ms)


_TARGETS: Final = {codec.config_name: codec for codec in Compression}


def _plausible(header: BatchHeader, batch: memoryview) -> bool:
    """Whether the records begin as their codec's data does; few that are not compressed are followed one by one."""
    codec = header.attributes & CODEC_MASK
    if codec:
        start = _FRAME_STARTS.get(codec)
        return start is None or batch[HEADER_SIZE : HEADER_SIZE + len(start)] == start
    position = HEADER_SIZE
    try:
        for _ in range(header.count):
            byte = batch[position]
            if byte < 128:
                length = byte >> 1 if not byte & 1 else -1
                position += 1
            else:
                length, position = read_varint(batch, position)
            if length < 0:
                return False
            position += length
    except (IndexError, CorruptBatchError):
        return False
    return position == len(batch)


def _bad_count(header: BatchHeader, name: str) -> InvalidBatch:
    offsets = f"[{header.base_offset}, {header.last_offset}]"
    if header.last_offset_delta < 0:
        message = f"Batch has an invalid offset range: {offsets} in topic partition {name}"
    elif header.count <= 0:
        message = f"Invalid reported count for record batch: {header.count} in topic partition {name}"
    else:
        message = (
            f"Inconsistent batch offset range {offsets} and count of records {header.count} in topic partition {name}"
        )
    return InvalidBatch(ErrorCode.INVALID_RECORD, message)
