"""The times of produced records: limits, wrong maxima, LogAppendTime.

The expected codes and messages are what Apache Kafka 4.3.1 answered.
"""

from dataclasses import replace

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import HEADER_SIZE, read_header
from kwire.protocol.records.record import Record, iter_records

from .produced import (
    APPEND_TIME,
    COMPACT,
    LIMITED,
    MANY,
    NOW,
    PLAIN,
    edited,
    no_key,
    records,
    refusal,
    stored,
    timed,
    validate,
)


def out_of_range(index: int, timestamp: int, before: int, after: int) -> tuple[int, str]:
    return (
        index,
        f"Timestamp {timestamp} of message with offset {index} is out of range. The timestamp should be within "
        f"[{NOW - before}, {NOW + after}]",
    )


@pytest.mark.parametrize("codec", Compression)
def test_timestamps_too_far_ahead(codec: Compression) -> None:
    hour = 3_600_000
    validate(timed(NOW + hour, codec=codec), PLAIN, NOW)
    late = NOW + hour + 1
    error = refusal(timed(NOW, late, 0, late, codec=codec))
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert error.message == "One or more records have been rejected due to invalid timestamp"
    assert error.record_errors == [out_of_range(index, late, 2**63 - 1, hour) for index in (1, 3)]


@pytest.mark.parametrize("codec", Compression)
def test_limits_both_ways(codec: Compression) -> None:
    validate(timed(NOW - 10_000, -1, NOW + 10_000, codec=codec), LIMITED, NOW)
    bad = [NOW - 10_001, NOW, NOW + 10_001]
    error = refusal(timed(*bad, codec=codec), LIMITED)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert error.record_errors == [out_of_range(index, bad[index], 10_000, 10_000) for index in (0, 2)]


def test_a_missing_key_goes_before_a_bad_time_of_the_same_record() -> None:
    late = NOW + 2 * 3_600_000
    assert refusal(build_batch(records(1, late, None)), COMPACT).code is ErrorCode.INVALID_RECORD
    mixed = build_batch([Record(0, NOW, None, b"", []), Record(1, late, b"k", b"", [])])
    error = refusal(mixed, COMPACT)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert error.record_errors == [no_key(0), out_of_range(1, late, 2**63 - 1, 3_600_000)]


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("claimed", [NOW + 9 * 3_600_000, NOW - 100])
def test_a_doubtful_max_timestamp_is_corrected(codec: Compression, claimed: int) -> None:
    """It is beyond the limit, or before the first record."""
    sent = edited(timed(NOW - 7, NOW - 3, NOW - 5, codec=codec), max_timestamp=claimed)
    batch = validate(sent, PLAIN, NOW)
    assert batch.header.max_timestamp == NOW - 3
    assert list(iter_records(stored(batch))) == list(iter_records(sent))


def test_correcting_keeps_the_meaningful_attribute_bits_only() -> None:
    sent = edited(timed(NOW - 7), attributes=0x7FC0, max_timestamp=NOW - 100)
    assert read_header(stored(validate(sent, PLAIN, NOW))).attributes == 0x40


def test_a_batch_marked_log_append_time() -> None:
    """A create-time topic drops the mark, and has the records' own times again; a log-append-time topic refuses it."""
    sent = edited(timed(NOW - 7, NOW - 3), attributes=0x08)
    kept = stored(validate(sent, PLAIN, NOW))
    assert read_header(kept).attributes == 0
    assert [record.timestamp for record in iter_records(kept)] == [NOW - 7, NOW - 3]
    error = refusal(sent, APPEND_TIME)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert error.record_errors == [
        (
            index,
            f"Invalid timestamp type in message DefaultRecord(offset={index}, timestamp={NOW - 3}, key=1 bytes, "
            "value=0 bytes). Producer should not set timestamp type to LogAppendTime.",
        )
        for index in (0, 1)
    ]
    assert refusal(edited(sent, max_timestamp=-1)).code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("count", [1, MANY])
def test_log_append_time(codec: Compression, count: int) -> None:
    sent = build_batch(records(count, 5), compression=codec)
    result = validate(sent, APPEND_TIME, NOW)
    kept = stored(result, 30, 2)
    assert result.log_append_time == NOW
    header = read_header(kept)
    assert (header.attributes, header.base_timestamp, header.max_timestamp) == (codec | 8, 5, NOW)
    assert kept[HEADER_SIZE:] == sent[HEADER_SIZE:]
    assert {record.timestamp for record in iter_records(kept)} == {NOW}


def test_log_append_time_knows_no_limits() -> None:
    config = replace(LIMITED, message_timestamp_type="LogAppendTime")
    validate(timed(NOW + 10**9, 0), config, NOW)
