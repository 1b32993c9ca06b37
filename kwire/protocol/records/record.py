"""Reading the records of a batch.

After the batch header come `count` records, compressed as one block where the header names a codec. Lengths, deltas
and counts are zigzag varints; a length of -1 is null::

    length | attributes int8 (unused) | timestamp_delta (64 bit) | offset_delta |
    key_length key | value_length value | header_count (key_length key value_length value)*
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.compression import DEFAULT_LIMIT, decompress
from kwire.protocol.records.crc import Buffer
from kwire.protocol.records.errors import CorruptBatchError
from kwire.protocol.records.header import CODEC_MASK, HEADER_SIZE, MAGIC, BatchHeader, read_header
from kwire.protocol.records.in_pieces import PIECE, in_pieces
from kwire.protocol.records.skim import skim
from kwire.protocol.records.varint import read_varint, read_varlong

MIN_RECORD_SIZE: Final = 7
"""Bytes of a record without key, value and headers: each of its seven fields takes one."""

Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """One record. Timestamps are ms; -1 is none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = []  # noqa: RUF012  (a record is never changed in place)


def stored_limit(header: BatchHeader) -> int:
    """To how many bytes a batch that was taken once may decompress: more where it is large itself."""
    return max(DEFAULT_LIMIT, 4 * header.size)


def record_data(batch: Buffer, header: BatchHeader, limit: int = DEFAULT_LIMIT) -> bytes:
    """The records of `batch` (just this batch), uncompressed, which may take up to `limit` bytes."""
    if not header.attributes & CODEC_MASK:
        return bytes(memoryview(batch)[HEADER_SIZE : header.size])
    return decompress(header.codec, memoryview(batch)[HEADER_SIZE : header.size], limit)


def iter_records(batch: Buffer, *, limit: int | None = None) -> Iterator[Record]:
    """The records of one batch in order, with their offsets and timestamps as a consumer sees them.

    Decompresses up to `limit` bytes, `stored_limit` unless given. A control batch yields its control record like any
    other. CorruptBatchError where the records do not fit the batch; the records before the bad one have been yielded
    then.
    """
    header = _header(batch)
    if header.count == 0:  # compaction may have removed all records: there may be no data at all to decompress
        return
    yield from records_in(header, record_data(batch, header, stored_limit(header) if limit is None else limit))


def iter_times(batch: Buffer) -> Iterator[tuple[int, int]]:
    """(timestamp, offset) of the records of a batch that was taken once, as `iter_records`.

    Nothing is made of what they hold: a small batch may unpack to one record with millions of headers.
    """
    header = _header(batch)
    if header.count == 0:
        return
    append_time = header.max_timestamp if header.log_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    for _, _, timestamp_delta, offset_delta, _, _ in skim(
        record_data(batch, header, stored_limit(header)), header.count
    ):
        yield base_timestamp + timestamp_delta if append_time is None else append_time, base_offset + offset_delta


def _header(batch: Buffer) -> BatchHeader:
    header = read_header(batch)
    if header.magic != MAGIC or not HEADER_SIZE <= header.size <= len(batch):
        raise CorruptBatchError(ErrorCode.CORRUPT_MESSAGE, "No whole record batch of format v2")
    return header


def records_in(header: BatchHeader, data: bytes) -> Iterator[Record]:
    """The records of the batch of this header whose uncompressed records are `data`; otherwise as `iter_records`."""
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.log_append_time else None
    for timestamp_delta, offset_delta, key_at, key_length, value_at, value_length, header_count, headers_at, _ in scan(
        data, header.count
    ):
        yield Record(
            base_offset + offset_delta,
            base_timestamp + timestamp_delta if append_time is None else append_time,
            None if key_length < 0 else data[key_at : key_at + key_length],
            None if value_length < 0 else data[value_at : value_at + value_length],
            _read_headers(data, headers_at, header_count) if header_count else [],
        )


def scan(data: bytes, count: int) -> Iterator[tuple[int, int, int, int, int, int, int, int, int]]:
    """Walks `count` records in uncompressed record data, yielding where the parts of each lie:

        timestamp delta, offset delta, key start, key length, value start, value length, header count, headers start,
        end

    A length below 0 is null. All lengths are checked, those inside headers too; nothing is copied. CorruptBatchError
    (INVALID_RECORD) where a record does not fit its length, the data ends early, or something is left after the last.
    """
    if count < 0:
        raise _invalid(f"Found invalid record count {count} in magic v2 batch")
    position = 0
    size = len(data)
    try:
        for _ in range(count):
            # Small varints take one byte: read those in place, the others by a call.
            byte = data[position]
            if byte < 128:
                length = byte >> 1 ^ -(byte & 1)
                position += 1
            else:
                length, position = read_varint(data, position)
            end = position + length
            if length < 0 or end > size:
                raise _invalid(f"Invalid record size: expected {length} bytes, {size - position} left")
            position += 1  # attributes: unused
            byte = data[position]
            if byte < 128:
                timestamp_delta = byte >> 1 ^ -(byte & 1)
                position += 1
            else:
                timestamp_delta, position = read_varlong(data, position)
            byte = data[position]
            if byte < 128:
                offset_delta = byte >> 1 ^ -(byte & 1)
                position += 1
            else:
                offset_delta, position = read_varint(data, position)
            byte = data[position]
            if byte < 128:
                key_length = byte >> 1 ^ -(byte & 1)
                key_start = position + 1
            else:
                key_length, key_start = read_varint(data, position)
            position = key_start + key_length if key_length > 0 else key_start
            byte = data[position]
            if byte < 128:
                value_length = byte >> 1 ^ -(byte & 1)
                value_start = position + 1
            else:
                value_length, value_start = read_varint(data, position)
            position = value_start + value_length if value_length > 0 else value_start
            header_count, headers_start = read_varint(data, position)
            position = headers_start
            if header_count:
                if not 0 < header_count <= end - position:
                    raise _invalid(f"Found invalid number of record headers {header_count}")
                position = skip_headers(data, position, header_count)
            if position != end:
                raise _invalid(f"Invalid record size: expected {length} bytes, {position - end + length} read")
            yield (
                timestamp_delta,
                offset_delta,
                key_start,
                key_length,
                value_start,
                value_length,
                header_count,
                headers_start,
                end,
            )
    except IndexError:
        raise _invalid("Incorrect declared batch size, premature EOF reached") from None
    if position != size and count:
        raise _invalid("Incorrect declared batch size, records still remaining in file")


def skip_headers(data: bytes, position: int, count: int) -> int:
    """Where `count` headers end that begin at `position`. CorruptBatchError or IndexError where they do not fit."""
    return _skip_headers(data, position, count) if count <= PIECE else in_pieces(_skip_headers, data, position, count)


def _skip_headers(data: bytes, position: int, count: int) -> int:
    for _ in range(count):
        length, position = read_varint(data, position)
        if length < 0:
            raise _invalid(f"Invalid negative header key size {length}")
        length, position = read_varint(data, position + length)
        if length > 0:
            position += length
    return position


def _read_headers(data: bytes, position: int, count: int) -> Headers:
    headers: Headers = []
    for _ in range(count):
        length, position = read_varint(data, position)
        # Kafka replaces what is not UTF-8, too: a header key is never a reason to refuse a record
        key = data[position : position + length].decode("utf-8", "replace")
        length, position = read_varint(data, position + length)
        if length < 0:
            headers.append((key, None))
        else:
            headers.append((key, data[position : position + length]))
            position += length
    return headers


def _invalid(message: str) -> CorruptBatchError:
    return CorruptBatchError(ErrorCode.INVALID_RECORD, message)
