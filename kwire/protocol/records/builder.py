"""Building record batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kwire.protocol.records.compression import Compression, compress
from kwire.protocol.records.header import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    seal,
)
from kwire.protocol.records.record import Record
from kwire.protocol.records.varint import encode_varint

_NULL = encode_varint(-1)


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    """One record as it lies, uncompressed, in a batch."""
    parts = [
        b"\x00",
        encode_varint(timestamp_delta),
        encode_varint(offset_delta),
        _NULL if key is None else encode_varint(len(key)) + key,
        _NULL if value is None else encode_varint(len(value)) + value,
        encode_varint(len(headers)),
    ]
    for name, header_value in headers:
        encoded = name.encode()
        parts.append(encode_varint(len(encoded)) + encoded)
        parts.append(_NULL if header_value is None else encode_varint(len(header_value)) + header_value)
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def most_bytes(key: bytes | None, value: bytes | None) -> int:
    """What `encode_record` gives at most without headers, in a batch whose timestamps are less than 2**40 ms apart."""
    body = _MOST_AROUND + _with_length(key) + _with_length(value)
    return body + _varint_bytes(body)


_MOST_AROUND = len(b"\x00" + encode_varint(1 << 40) + encode_varint(2**31 - 1) + encode_varint(0))
"""Attributes, timestamp delta, offset delta, number of headers."""


def _with_length(data: bytes | None) -> int:
    return len(_NULL) if data is None else _varint_bytes(len(data)) + len(data)


def _varint_bytes(number: int) -> int:
    """Of one that is not negative: zigzag makes it one bit longer, and each byte holds seven."""
    return number.bit_length() // 7 + 1


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    log_append_time: int | None = None,
    delete_horizon: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    last_offset: int | None = None,
) -> bytes:
    """A batch of these records; with none of them the empty batch that compaction leaves behind.

    Each record keeps its offset, which must lie in [base_offset, last_offset]; `last_offset` is the last record's
    where it is not given. `log_append_time` (ms) makes the batch one of LogAppendTime: that time, as max_timestamp,
    is then every record's; otherwise it is CreateTime and max_timestamp the latest of the records'. `delete_horizon`
    (ms) is put in place of the first record's time as the base timestamp. `level` means what
    `compression.<codec>.level` means.
    """
    encoded: list[bytes] = []
    base_timestamp = NO_TIMESTAMP if delete_horizon is None else delete_horizon
    max_timestamp = NO_TIMESTAMP
    last_delta = -1
    for record in records:
        timestamp = record.timestamp
        if not encoded and delete_horizon is None:
            base_timestamp = timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        last_delta = record.offset - base_offset
        encoded.append(encode_record(timestamp - base_timestamp, last_delta, record.key, record.value, record.headers))
    data = b"".join(encoded)
    if compression and encoded:
        data = compress(compression, data, level)
    attributes = (
        compression
        | (LOG_APPEND_TIME_FLAG if log_append_time is not None else 0)
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
        | (DELETE_HORIZON_FLAG if delete_horizon is not None else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=HEADER_SIZE - LOG_OVERHEAD + len(data),
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_delta if last_offset is None else last_offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp if log_append_time is None else log_append_time,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(encoded),
    )
    return seal(header, data) + data
