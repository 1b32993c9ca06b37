"""Batches as producers send them, good and bad, and what a leader makes of them."""

from __future__ import annotations

import pytest

from kwire.config.topic import LogConfig
from kwire.protocol.records import InvalidBatch
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.crc import Buffer
from kwire.protocol.records.header import HEADER_SIZE, crc_matches, read_header, seal, write_prefix
from kwire.protocol.records.record import Record
from kwire.protocol.records.varint import encode_varint
from kwire.storage.record_walk import PendingWalk
from kwire.storage.validated import Origin, ValidatedBatch
from kwire.storage.validation import check, first_batch

NOW = 1_795_235_850_000
PLAIN = LogConfig()
COMPACT = LogConfig(cleanup_policy=frozenset({"compact"}))
APPEND_TIME = LogConfig(message_timestamp_type="LogAppendTime")
LIMITED = LogConfig(message_timestamp_before_max_ms=10_000, message_timestamp_after_max_ms=10_000)

MANY = 40
"""More records than are followed one by one for the sake of it."""


def records(count: int = 3, timestamp: int = NOW, key: bytes | None = b"k") -> list[Record]:
    return [Record(index, timestamp, key, b"v%d" % index, []) for index in range(count)]


OK = build_batch(records())
DATA = OK[HEADER_SIZE:]
BIG = build_batch(records(MANY))


def edited(batch: bytes, **fields: int) -> bytes:
    """The batch with these header fields, and the CRC right."""
    return seal(read_header(batch)._replace(**fields), batch[HEADER_SIZE:]) + batch[HEADER_SIZE:]


def with_data(data: bytes, codec: Compression = Compression.NONE, count: int = 3) -> bytes:
    header = read_header(OK)._replace(
        batch_length=HEADER_SIZE - 12 + len(data), attributes=int(codec), count=count, last_offset_delta=count - 1
    )
    return seal(header, data) + data


def many_headers(count: int, timestamp_delta: int = 0) -> bytes:
    """One record that has nothing but headers, of two bytes each."""
    body = b"\0" + encode_varint(timestamp_delta) + b"\0" + b"\x02k" + b"\1" + encode_varint(count) + b"\0\1" * count
    return with_data(encode_varint(len(body)) + body, count=1)


def timed(*timestamps: int, codec: Compression = Compression.NONE) -> bytes:
    return build_batch([Record(i, at, b"k", b"", []) for i, at in enumerate(timestamps)], compression=codec)


def no_key(index: int) -> tuple[int, str]:
    """What is said of a record without key to a compacted topic."""
    return (index, "Compacted topic cannot accept message without key in topic partition t-0")


def validate(
    sent: Buffer | None,
    config: LogConfig,
    now_ms: int,
    *,
    origin: Origin = Origin.CLIENT,
    name: str = "",
    produce_version: int | None = None,
) -> ValidatedBatch:
    """All that a leader checks, at once."""
    header, batch = first_batch(sent, produce_version)
    result = check(header, batch, config, now_ms, origin=origin, name=name)
    return result.run() if isinstance(result, PendingWalk) else result


def stored(result: ValidatedBatch, base_offset: int = 0, leader_epoch: int = 0) -> bytes:
    """The one batch as it is in the log."""
    whole = write_prefix(base_offset, result.header.batch_length, leader_epoch) + b"".join(result.parts)
    assert read_header(whole) == result.header._replace(base_offset=base_offset, leader_epoch=leader_epoch)
    assert crc_matches(result.header, whole)
    return whole


def refusal(batch: bytes | None, config: LogConfig = PLAIN, **options) -> InvalidBatch:
    with pytest.raises(InvalidBatch) as caught:
        validate(batch, config, NOW, name="t-0", **options)
    return caught.value
