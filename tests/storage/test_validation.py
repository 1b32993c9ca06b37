"""What a leader refuses or passes by header and checksum.

The expected codes and messages are what Apache Kafka 4.3.1 answered.
"""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.config.topic import LogConfig
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import InvalidBatch
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.header import HEADER_SIZE, read_header, seal
from kwire.protocol.records.record import Record
from kwire.storage import validation
from kwire.storage.validated import Origin, ValidatedBatch
from kwire.storage.validation import check, first_batch

from .produced import (
    APPEND_TIME,
    BIG,
    COMPACT,
    LIMITED,
    MANY,
    NOW,
    OK,
    PLAIN,
    edited,
    records,
    refusal,
    stored,
    validate,
)

# Batches that pass as they are


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("count", [1, 3, MANY])
def test_a_good_batch_is_stored_as_sent(codec: Compression, count: int) -> None:
    sent = build_batch(records(count), compression=codec, producer_id=5, producer_epoch=1, base_sequence=7)
    header, view = first_batch(memoryview(sent), 9)
    result = check(header, view, PLAIN, NOW)
    assert isinstance(result, ValidatedBatch)
    assert result.log_append_time == -1
    assert stored(result, 77, 4) == (77).to_bytes(8, "big") + sent[8:12] + (4).to_bytes(4, "big") + sent[16:]


def test_the_records_are_not_copied() -> None:
    sent = bytearray(BIG)
    batch = validate(memoryview(sent), PLAIN, NOW)
    sent[-1] ^= 1
    assert batch.parts[-1][-1] == sent[-1]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"attributes": 0x80}, id="unused attribute bits"),
        pytest.param({"attributes": 0x7F00}, id="unused high attribute bits"),
        pytest.param({"attributes": 0x40}, id="delete horizon"),
        pytest.param({"attributes": 0x10}, id="transactional without producer id"),
        pytest.param({"producer_id": -2, "producer_epoch": 3, "base_sequence": -4}, id="negative producer id"),
        pytest.param({"producer_id": 78, "producer_epoch": -1, "base_sequence": 0}, id="producer epoch -1"),
        pytest.param({"base_timestamp": -5, "max_timestamp": -5}, id="negative timestamps"),
        pytest.param({"base_timestamp": -1, "max_timestamp": -1}, id="no timestamps"),
        pytest.param({"base_timestamp": 5, "max_timestamp": 5}, id="old timestamps"),
    ],
)
def test_oddities_that_kafka_accepts_too(fields: dict[str, int]) -> None:
    sent = edited(BIG, **fields)
    assert stored(validate(sent, PLAIN, NOW))[16:] == sent[16:]


@pytest.mark.parametrize("rest", [b"xxxxx", OK[:40], b"\xff" * 11, OK[:-1]])
def test_a_partial_batch_at_the_end_is_cut_off(rest: bytes) -> None:
    assert stored(validate(OK + rest, PLAIN, NOW, produce_version=8))[16:] == OK[16:]


# Refused before the partition is looked at


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(None, ErrorCode.INVALID_RECORD, id="null"),
        pytest.param(b"", ErrorCode.INVALID_RECORD, id="empty"),
        pytest.param(OK + OK, ErrorCode.INVALID_RECORD, id="two batches"),
        pytest.param(OK[:-3], ErrorCode.INVALID_RECORD, id="cut short"),
        pytest.param(OK[:10], ErrorCode.INVALID_RECORD, id="cut before the length"),
        pytest.param(OK[:14], ErrorCode.INVALID_RECORD, id="cut before the magic"),
        pytest.param(edited(OK, batch_length=100_000), ErrorCode.INVALID_RECORD, id="length beyond the end"),
        pytest.param(edited(OK, batch_length=10), ErrorCode.CORRUPT_MESSAGE, id="length too small"),
        pytest.param(edited(OK, batch_length=20), ErrorCode.CORRUPT_MESSAGE, id="length of no header"),
        pytest.param(edited(OK, batch_length=-5), ErrorCode.CORRUPT_MESSAGE, id="negative length"),
        pytest.param(OK + b"\xff" * 30, ErrorCode.CORRUPT_MESSAGE, id="garbage at the end"),
        pytest.param(OK + bytes(30), ErrorCode.CORRUPT_MESSAGE, id="zeros at the end"),
        pytest.param(edited(OK, magic=0), ErrorCode.INVALID_RECORD, id="magic 0"),
        pytest.param(edited(OK, magic=1), ErrorCode.INVALID_RECORD, id="magic 1"),
        pytest.param(edited(OK, magic=3), ErrorCode.CORRUPT_MESSAGE, id="magic 3"),
        pytest.param(edited(OK, magic=-1), ErrorCode.CORRUPT_MESSAGE, id="magic -1"),
    ],
)
def test_no_single_batch(sent: bytes | None, code: ErrorCode) -> None:
    with pytest.raises(InvalidBatch) as caught:
        first_batch(sent, 8)
    assert caught.value.code is code
    assert caught.value.record_errors == ()


def test_zstd_needs_produce_version_7() -> None:
    sent = build_batch(records(), compression=Compression.ZSTD)
    for blob in (sent, sent + b"rest"):
        with pytest.raises(InvalidBatch) as caught:
            first_batch(blob, 6)
        assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert first_batch(blob, 7)[0] == first_batch(blob)[0] == read_header(sent)
    first_batch(build_batch(records(), compression=Compression.LZ4), 3)


# Refused for what the header says


@pytest.mark.parametrize("batch", [OK, BIG], ids=["small", "larger"])
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"base_offset": 5}, ErrorCode.INVALID_RECORD),
        ({"count": 2}, ErrorCode.INVALID_RECORD),
        ({"count": 0}, ErrorCode.INVALID_RECORD),
        ({"count": -1}, ErrorCode.INVALID_RECORD),
        ({"count": 0, "last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": -5}, ErrorCode.INVALID_RECORD),
        ({"count": 2**31 - 1, "last_offset_delta": 2**31 - 2}, ErrorCode.INVALID_RECORD),
        ({"attributes": 5}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"attributes": 6}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"attributes": 7}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"attributes": 1}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"attributes": 3}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"attributes": 4}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 77}, ErrorCode.INVALID_RECORD),
    ],
)
def test_bad_headers(batch: bytes, fields: dict[str, int], code: ErrorCode) -> None:
    assert refusal(edited(batch, **fields)).code is code


def test_bad_checksum() -> None:
    assert refusal(OK[:-1] + b"!").code is ErrorCode.CORRUPT_MESSAGE


@given(st.integers(21, len(BIG) - 1), st.integers(1, 255))
def test_any_changed_byte_under_the_checksum_is_found(position: int, change: int) -> None:
    sent = bytearray(BIG)
    sent[position] ^= change
    assert refusal(bytes(sent)).code is ErrorCode.CORRUPT_MESSAGE


def test_too_large() -> None:
    sent = build_batch([Record(0, NOW, None, bytes(300), [])])
    config = LogConfig(max_message_bytes=len(sent) - 1)
    assert refusal(sent, config).code is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(sent[:-1] + b"!", config).code is ErrorCode.MESSAGE_TOO_LARGE  # the size is looked at first
    validate(sent, LogConfig(max_message_bytes=len(sent)), NOW)


@pytest.mark.parametrize("config", [PLAIN, COMPACT])
def test_larger_than_a_segment(config: LogConfig) -> None:
    sent = build_batch([Record(0, NOW, b"k", bytes(3000), [])])
    assert refusal(sent, replace(config, segment_bytes=3000)).code is ErrorCode.RECORD_LIST_TOO_LARGE


def test_coordinators_may_do_what_clients_may_not() -> None:
    marker = build_end_txn_marker(5, 0, commit=True, coordinator_epoch=0, timestamp=NOW)
    assert refusal(marker).code is ErrorCode.INVALID_RECORD
    assert stored(validate(marker, PLAIN, NOW, origin=Origin.COORDINATOR)) == marker[:12] + bytes(4) + marker[16:]
    without_sequence = build_batch(records(), producer_id=5, producer_epoch=0, transactional=True)
    validate(without_sequence, COMPACT, NOW, origin=Origin.COORDINATOR)


# Anything at all


CONFIGS = [
    PLAIN,
    COMPACT,
    APPEND_TIME,
    LIMITED,
    LogConfig(compression_type="gzip"),
    LogConfig(compression_type="uncompressed", message_timestamp_type="LogAppendTime"),
]


@given(
    st.sampled_from(CONFIGS),
    st.sampled_from([OK, BIG, *(build_batch(records(), compression=codec) for codec in Compression)]),
    st.lists(st.tuples(st.integers(0, 500), st.binary(min_size=1, max_size=4)), max_size=4),
    st.booleans(),
)
def test_nothing_but_our_error(config: LogConfig, batch: bytes, changes: list[tuple[int, bytes]], repair: bool) -> None:
    """Whatever is changed, also with a right checksum: a refusal, or a batch that is whole."""
    changed = bytearray(batch)
    for position, value in changes:
        position %= len(changed)
        changed[position : position + len(value)] = value
    if repair:
        changed[:HEADER_SIZE] = seal(read_header(changed), changed[HEADER_SIZE:])
    with suppress(InvalidBatch):
        stored(validate(bytes(changed), config, NOW, produce_version=8))


@given(st.binary(max_size=200))
def test_garbage(data: bytes) -> None:
    with suppress(InvalidBatch):
        validate(data, PLAIN, NOW)


def test_limits_of_what_is_checked_without_a_walk() -> None:
    """The documented gap: a larger batch of plain records whose lengths lie passes; its checksum is right."""
    data = BIG[HEADER_SIZE:]
    lying = bytes([data[0] + 2]) + data[1:]
    sent = seal(read_header(BIG), lying) + lying
    assert isinstance(check(*first_batch(sent), PLAIN, NOW), ValidatedBatch)
    assert validation._SMALL_BATCH < MANY
