"""What stays of a batch: all of it, some records under a new header, an empty header, or nothing.

A batch that loses records keeps its offsets, its producer's sequence and its leader epoch, whatever is left in it. The
last batch of each active producer stays even when it is empty, for what comes after a restart must know the producer's
last sequence; so does the last batch of a cleaning, which says where the log goes on.

A tombstone, and the marker of a transaction of which nothing else is left, stay for delete.retention.ms from the
cleaning on that meets them first: it writes that time into the batch, as its delete horizon (KIP-534).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kwire.ports.files import Buffer
from kwire.protocol.records.compression import Compression, compress
from kwire.protocol.records.header import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    seal,
)
from kwire.protocol.records.record import record_data, stored_limit
from kwire.protocol.records.skim import extents, skim, timestamp_delta_at
from kwire.protocol.records.varint import encode_varint, read_varint, read_varlong
from kwire.storage.cleaning.offset_map import OffsetMap
from kwire.storage.cleaning.transactions import CleanedTransactions
from kwire.storage.producer_entry import NO_OFFSET


class LastBatch(NamedTuple):
    """What the log remembers of a producer."""

    last_offset: int
    """Of its last batch of records; NO_OFFSET where a marker is all there is of its epoch."""
    epoch: int


_Kept = tuple[int, int, int]
"""A record that stays: where it begins and ends in the records' data, and its timestamp delta."""


class BatchFilter:
    """Filters the batches of one cleaning, in the order of their offsets."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        producers: Mapping[int, LastBatch],
        end_offset: int,
        now_ms: int,
        delete_retention_ms: int,
        limit: int,
    ) -> None:
        """`end_offset`: where the cleaning ends (exclusive). `limit`: bytes that a batch may decompress to."""
        self._offsets = offsets
        self._transactions = transactions
        self._producers = producers
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._limit = limit

    def filter(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """What stays; None for nothing. Raises CorruptBatchError."""
        if header.control:
            needless = self._transactions.is_needless(header, batch)
            due = header.has_delete_horizon and header.base_timestamp <= self._now_ms
            filtered = None if needless and due else self._filter_marker(header, batch, needless)
        elif self._transactions.is_aborted(header):
            filtered = None
        else:
            filtered = self._filter_records(header, batch)
        if filtered is None and self._stays_empty(header):
            return _emptied(header)
        return filtered

    def _stays_empty(self, header: BatchHeader) -> bool:
        if header.next_offset == self._end_offset:
            return True
        last = self._producers.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset == NO_OFFSET:
            return header.control and header.producer_epoch == last.epoch
        return header.last_offset == last.last_offset

    def _filter_marker(self, header: BatchHeader, batch: memoryview, needless: bool) -> Buffer | None:
        if not header.count:
            return None
        if not needless or header.has_delete_horizon:
            return batch
        data = record_data(batch, header, max(self._limit, stored_limit(header)))
        marker = 0, len(data), header.max_timestamp - header.base_timestamp
        return self._rewritten(header, data, [marker], self._new_horizon())

    def _filter_records(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        if not header.count:
            return None
        tombstones_go = header.has_delete_horizon and header.base_timestamp <= self._now_ms
        if self._offsets.has_marks(header):
            superseded, tombstones = self._offsets.marks.of(header.base_offset, header.last_offset)
            if not superseded | tombstones:
                return batch
            gone = superseded | tombstones if tombstones_go else superseded
            if gone.bit_count() == header.count:
                return None
            data = record_data(batch, header, max(self._limit, stored_limit(header)))
            kept = _marked(header, data, gone)
            tombstones &= ~gone
        else:
            data = record_data(batch, header, max(self._limit, stored_limit(header)))
            latest = self._offsets.latest(header, skim(data, header.count), tombstones_go)
            if not latest:
                return None
            kept = [(start, end, timestamp_delta) for start, end, timestamp_delta, _, _, _ in latest]
            tombstones = any(null for _, _, _, _, _, null in latest)
        if tombstones and not header.has_delete_horizon:
            return self._rewritten(header, data, kept, self._new_horizon())
        if len(kept) == header.count:
            return batch
        return self._rewritten(header, data, kept, header.base_timestamp if header.has_delete_horizon else None)

    def _new_horizon(self) -> int:
        return self._now_ms + self._delete_retention_ms

    def _rewritten(self, header: BatchHeader, data: bytes, kept: list[_Kept], horizon: int | None) -> bytes:
        old_base, marked = header.base_timestamp, header.log_append_time
        newest = max(delta for _, _, delta in kept)
        base = horizon
        if base is None:
            base = header.max_timestamp if marked else old_base + kept[0][2]
        if base == old_base and not marked:
            records = b"".join([data[start:end] for start, end, _ in kept])
        elif marked:
            records = b"".join([_retimed(data, start, end, header.max_timestamp - base) for start, end, _ in kept])
        else:
            later = old_base - base
            records = b"".join([_retimed(data, start, end, delta + later) for start, end, delta in kept])
        codec = header.codec
        if codec is not Compression.NONE:
            records = compress(codec, records)
        attributes = header.attributes & (CODEC_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG)
        rewritten = header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD + len(records),
            attributes=attributes if horizon is None else attributes | DELETE_HORIZON_FLAG,
            base_timestamp=base,
            max_timestamp=header.max_timestamp if marked else old_base + newest,
            count=len(kept),
        )
        return seal(rewritten, records) + records


def _marked(header: BatchHeader, data: bytes, gone: int) -> list[_Kept]:
    """The records without a bit in `gone`."""
    flags = f"{gone:0{header.count}b}"[::-1]
    return [
        (start, end, timestamp_delta_at(data, body))
        for flag, (start, body, end) in zip(flags, extents(data, header.count), strict=True)
        if flag == "0"
    ]


def _retimed(data: bytes, start: int, end: int, delta: int) -> bytes:
    """The record with another timestamp delta."""
    body = start + 1 if data[start] < 128 else read_varint(data, start)[1]
    at = body + 1
    rest = at + 1 if data[at] < 128 else read_varlong(data, at)[1]
    encoded = encode_varint(delta)
    if len(encoded) == rest - at:
        return data[start:at] + encoded + data[rest:end]
    return encode_varint(end - rest + len(encoded) + 1) + data[body:at] + encoded + data[rest:end]


def _emptied(header: BatchHeader) -> bytes:
    attributes = header.attributes & (LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG)
    return seal(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD, attributes=attributes, base_timestamp=NO_TIMESTAMP, count=0
        ),
        b"",
    )
