"""What a leader refuses, passes, rewrites. The expected codes and messages are what Apache Kafka 4.3.1 answered."""

import random
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.config.topic import LogConfig
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import InvalidBatch
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression, compress
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.header import HEADER_SIZE, crc_matches, read_header, seal
from kwire.protocol.records.record import Record, iter_records
from kwire.storage import validation
from kwire.storage.validation import Origin, PendingWalk, ValidatedBatches, check, first_batch, validate

NOW = 1_795_235_850_000
PLAIN = LogConfig()
COMPACT = LogConfig(cleanup_policy=frozenset({"compact"}))
APPEND_TIME = LogConfig(message_timestamp_type="LogAppendTime")
LIMITED = LogConfig(message_timestamp_before_max_ms=10_000, message_timestamp_after_max_ms=10_000)

MANY = 40  # more records than are followed one by one for the sake of it


def records(count: int = 3, timestamp: int = NOW, key: bytes | None = b"k") -> list[Record]:
    return [Record(index, timestamp, key, b"v%d" % index, []) for index in range(count)]


def edited(batch: bytes, **fields: int) -> bytes:
    """The batch with these header fields, and the CRC right."""
    return seal(read_header(batch)._replace(**fields), batch[HEADER_SIZE:]) + batch[HEADER_SIZE:]


def with_data(data: bytes, codec: Compression = Compression.NONE, count: int = 3) -> bytes:
    header = read_header(OK)._replace(
        batch_length=HEADER_SIZE - 12 + len(data), attributes=int(codec), count=count, last_offset_delta=count - 1
    )
    return seal(header, data) + data


def stored(result: ValidatedBatches, base_offset: int = 0, leader_epoch: int = 0) -> bytes:
    (batch,) = result.batches
    whole = b"".join(batch.buffers(base_offset, leader_epoch))
    assert read_header(whole) == batch.placed(base_offset, leader_epoch)
    assert crc_matches(batch.header, whole)
    assert result.size == len(whole)
    return whole


def refusal(batch: bytes | None, config: LogConfig = PLAIN, **options) -> InvalidBatch:
    with pytest.raises(InvalidBatch) as caught:
        validate(batch, config, NOW, name="t-0", **options)
    return caught.value


OK = build_batch(records())
DATA = OK[HEADER_SIZE:]
BIG = build_batch(records(MANY))


# Batches that pass as they are


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("count", [1, 3, MANY])
def test_a_good_batch_is_stored_as_sent(codec: Compression, count: int) -> None:
    sent = build_batch(records(count), compression=codec, producer_id=5, producer_epoch=1, base_sequence=7)
    header, view = first_batch(memoryview(sent), 9)
    result = check(header, view, PLAIN, NOW)
    assert isinstance(result, ValidatedBatches)
    assert result.log_append_time == -1
    assert stored(result, 77, 4) == (77).to_bytes(8, "big") + sent[8:12] + (4).to_bytes(4, "big") + sent[16:]


def test_the_records_are_not_copied() -> None:
    sent = bytearray(BIG)
    (batch,) = validate(memoryview(sent), PLAIN, NOW).batches
    parts = batch.buffers(0, 0)
    sent[-1] ^= 1
    assert parts[-1][-1] == sent[-1]


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


# Records that do not fit, found where the records are walked


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(edited(OK, count=2, last_offset_delta=1), id="a record too many"),
        pytest.param(edited(OK, count=4, last_offset_delta=3), id="a record too few"),
        pytest.param(with_data(bytes([DATA[0] + 2]) + DATA[1:]), id="length too large"),
        pytest.param(with_data(bytes([DATA[0] - 2]) + DATA[1:]), id="length too small"),
        pytest.param(with_data(b"\x01" + DATA[1:]), id="negative length"),
        pytest.param(with_data(b"\xff" * 10 + DATA[10:]), id="varint without end"),
        pytest.param(with_data(b"\x81\x01" + DATA), id="long negative length"),
    ],
)
def test_small_batches_are_always_looked_through(sent: bytes) -> None:
    error = refusal(sent)
    assert error.code is ErrorCode.INVALID_RECORD
    assert error.record_errors == ()


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_compressed_records_that_do_not_fit(codec: Compression) -> None:
    sent = build_batch(records(), compression=codec)
    for count in (2, 4):
        wrong = edited(sent, count=count, last_offset_delta=count - 1)
        assert refusal(wrong, COMPACT).code is ErrorCode.INVALID_RECORD
        assert refusal(wrong, LogConfig(compression_type="uncompressed")).code is ErrorCode.INVALID_RECORD
    cut = edited(sent[:-3], batch_length=len(sent) - 3 - 12)
    assert refusal(cut, COMPACT).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refusal(with_data(b"\x30" * 30, codec), COMPACT).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refusal(with_data(compress(codec, b"\x30" * 30), codec), COMPACT).code is ErrorCode.INVALID_RECORD


def test_offsets_out_of_order() -> None:
    unordered = [Record(0, NOW, b"a", b"", []), Record(2, NOW, b"b", b"", []), Record(1, NOW, b"c", b"", [])]
    plain = build_batch(unordered, last_offset=2)
    assert stored(validate(plain, COMPACT, NOW))[16:] == plain[16:]
    packed = build_batch(unordered, last_offset=2, compression=Compression.GZIP)
    assert refusal(packed, COMPACT).code is ErrorCode.UNKNOWN_SERVER_ERROR
    for sent in (plain, packed):
        rebuilt = stored(validate(sent, LogConfig(compression_type="lz4"), NOW), 10)
        assert [(record.offset, record.key) for record in iter_records(rebuilt)] == [(10, b"a"), (11, b"b"), (12, b"c")]


# Keys


def no_key(index: int) -> tuple[int, str]:
    return (index, "Compacted topic cannot accept message without key in topic partition t-0")


@pytest.mark.parametrize("codec", Compression)
def test_compacted_topics_demand_keys(codec: Compression) -> None:
    keys = [b"k", None, b"", None]
    sent = build_batch([Record(i, NOW, key, b"", []) for i, key in enumerate(keys)], compression=codec)
    error = refusal(sent, COMPACT)
    assert error.code is ErrorCode.INVALID_RECORD
    assert error.record_errors == [no_key(1), no_key(3)]
    assert error.message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing the first three "
        "errors at most: [RecordError(batchIndex=1, message='Compacted topic cannot accept message without key in "
        "topic partition t-0'), RecordError(batchIndex=3, message='Compacted topic cannot accept message without key "
        "in topic partition t-0')]"
    )
    validate(build_batch(records(MANY), compression=codec), COMPACT, NOW)


def test_only_three_are_shown_but_all_are_named() -> None:
    error = refusal(build_batch(records(MANY, key=None)), COMPACT)
    assert error.record_errors == [no_key(index) for index in range(MANY)]
    assert error.message is not None
    assert error.message.count("batchIndex") == 3


def test_also_where_it_is_deleted_from_too() -> None:
    both = LogConfig(cleanup_policy=frozenset({"compact", "delete"}))
    assert refusal(build_batch(records(key=None)), both).record_errors


# Timestamps


def out_of_range(index: int, timestamp: int, before: int, after: int) -> tuple[int, str]:
    return (
        index,
        f"Timestamp {timestamp} of message with offset {index} is out of range. The timestamp should be within "
        f"[{NOW - before}, {NOW + after}]",
    )


def timed(*timestamps: int, codec: Compression = Compression.NONE) -> bytes:
    return build_batch([Record(i, at, b"k", b"", []) for i, at in enumerate(timestamps)], compression=codec)


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
    (batch,) = validate(sent, PLAIN, NOW).batches
    assert batch.header.max_timestamp == NOW - 3
    assert list(iter_records(b"".join(batch.buffers(0, 0)))) == list(iter_records(sent))


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


# Another codec


@pytest.mark.parametrize("source", Compression)
@pytest.mark.parametrize("target", Compression)
def test_recompression(source: Compression, target: Compression) -> None:
    originals = [Record(i, NOW - i, b"k" * i, b"v" * 100, [("h", b"x")]) for i in range(MANY)]
    sent = build_batch(
        originals, compression=source, producer_id=9, producer_epoch=2, base_sequence=4, transactional=True
    )
    config = LogConfig(compression_type=target.config_name)
    kept = stored(validate(sent, config, NOW), 0, 3)
    header = read_header(kept)
    assert header.codec is target
    assert header.leader_epoch == 3
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.transactional) == (9, 2, 4, True)
    assert (header.base_timestamp, header.max_timestamp, header.count) == (NOW, NOW, MANY)
    assert list(iter_records(kept)) == originals
    if source is target:
        assert kept[16:] == sent[16:]


def test_recompression_with_log_append_time() -> None:
    config = replace(APPEND_TIME, compression_type="gzip")
    result = validate(BIG, config, NOW + 5)
    header = read_header(stored(result))
    assert (header.attributes, header.base_timestamp, header.max_timestamp) == (9, NOW, NOW + 5)
    assert result.log_append_time == NOW + 5


def test_recompression_heals_the_header() -> None:
    sent = edited(OK, attributes=0x7FC0, max_timestamp=NOW + 5)
    header = read_header(stored(validate(sent, LogConfig(compression_type="gzip"), NOW)))
    assert (header.attributes, header.max_timestamp) == (1, NOW)


def test_rebuilding_starts_from_the_first_records_time() -> None:
    sent = edited(build_batch([Record(0, NOW, b"k", b"", [])], delete_horizon=NOW - 4), attributes=0)
    kept = stored(validate(sent, LogConfig(compression_type="gzip"), NOW))
    assert read_header(kept).base_timestamp == NOW
    assert [record.timestamp for record in iter_records(kept)] == [NOW]


def test_the_topics_level_is_used() -> None:
    sent = build_batch([Record(i, NOW, None, b"text %d, again and again" % i, []) for i in range(2000)])
    for name, fast, small in (("gzip", 1, 9), ("lz4", 1, 17), ("zstd", -10, 19)):
        field = f"compression_{name}_level"
        sizes = [
            validate(sent, replace(LogConfig(compression_type=name), **{field: level}), NOW).size
            for level in (fast, small)
        ]
        assert sizes[1] <= sizes[0] < len(sent), name
    assert validate(sent, LogConfig(compression_type="snappy"), NOW).size < len(sent)


def test_too_large_once_unpacked() -> None:
    sent = build_batch([Record(0, NOW, None, bytes(2000), [])], compression=Compression.GZIP)
    config = LogConfig(compression_type="uncompressed", max_message_bytes=300)
    assert refusal(sent, config).code is ErrorCode.MESSAGE_TOO_LARGE


def test_negative_times_cannot_be_rebuilt() -> None:
    sent = timed(-5)
    assert refusal(sent, LogConfig(compression_type="gzip")).code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_control_batches_stay_uncompressed() -> None:
    marker = build_end_txn_marker(5, 0, commit=True, coordinator_epoch=0, timestamp=NOW)
    config = LogConfig(compression_type="gzip")
    assert stored(validate(marker, config, NOW, origin=Origin.COORDINATOR))[16:] == marker[16:]


# Which walks are for a worker thread


@pytest.mark.parametrize(
    ("batch", "large"),
    [
        pytest.param(build_batch(records(10)), False, id="few"),
        pytest.param(build_batch(records(1000)), True, id="many"),
        pytest.param(build_batch(records(10), compression=Compression.ZSTD), False, id="few compressed"),
        pytest.param(build_batch([Record(0, NOW, b"k", bytes(100_000), [])]), False, id="a long one"),
        pytest.param(
            build_batch([Record(0, NOW, b"k", DATA * 300, [])], compression=Compression.SNAPPY),
            False,
            id="a long one that packs well",
        ),
        pytest.param(
            build_batch([Record(0, NOW, b"k", random.Random(1).randbytes(3000), [])], compression=Compression.LZ4),
            True,
            id="a long one that does not",
        ),
    ],
)
def test_large_walks(batch: bytes, large: bool) -> None:
    pending = check(*first_batch(batch), COMPACT, NOW)
    assert isinstance(pending, PendingWalk)
    assert pending.large is large
    assert pending.run() == validate(batch, COMPACT, NOW)


def test_plain_batches_need_no_walk_whatever_their_size() -> None:
    for codec in Compression:
        sent = build_batch(records(1000), compression=codec)
        assert isinstance(check(*first_batch(sent), PLAIN, NOW), ValidatedBatches)


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
    assert isinstance(check(*first_batch(sent), PLAIN, NOW), ValidatedBatches)
    assert validation._SMALL_BATCH < MANY
