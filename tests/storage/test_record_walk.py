"""What a leader finds in the records: lengths, offsets, keys.

The expected codes and messages are what Apache Kafka 4.3.1 answered.
"""

import random
import tracemalloc
from dataclasses import replace

import pytest

from kwire.config.topic import LogConfig
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import InvalidBatch
from kwire.protocol.records.builder import build_batch, encode_record
from kwire.protocol.records.compression import Compression, compress
from kwire.protocol.records.record import Record, iter_records
from kwire.storage.record_walk import MOST_TOLD, PendingWalk
from kwire.storage.validated import ValidatedBatch
from kwire.storage.validation import check, first_batch

from ..interpreter_lock import turns_during
from .produced import (
    COMPACT,
    DATA,
    MANY,
    NOW,
    OK,
    PLAIN,
    edited,
    many_headers,
    no_key,
    records,
    refusal,
    stored,
    validate,
    with_data,
)

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


def test_of_very_many_the_first_are_named_and_all_are_counted() -> None:
    count = MOST_TOLD + 5
    error = refusal(build_batch(records(count, key=None), compression=Compression.GZIP), COMPACT)
    assert error.record_errors == [no_key(index) for index in range(MOST_TOLD)]
    assert f"due to {count} record errors in total" in (error.message or "")


def test_also_where_it_is_deleted_from_too() -> None:
    both = LogConfig(cleanup_policy=frozenset({"compact", "delete"}))
    assert refusal(build_batch(records(key=None)), both).record_errors


# Which walks are for a worker thread


@pytest.mark.parametrize(
    ("batch", "large"),
    [
        pytest.param(build_batch(records(10)), False, id="few"),
        pytest.param(build_batch(records(1000)), True, id="many"),
        pytest.param(build_batch(records(10), compression=Compression.ZSTD), False, id="few compressed"),
        pytest.param(build_batch([Record(0, NOW, b"k", bytes(50_000), [])]), False, id="a long one"),
        pytest.param(build_batch([Record(0, NOW, b"k", b"", [("", None)] * 40_000)]), True, id="one of many headers"),
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
        pytest.param(
            build_batch([Record(0, NOW, b"k", bytes(8 << 20), [])], compression=Compression.ZSTD),
            True,
            id="a bomb of zstd",
        ),
    ],
)
def test_large_walks(batch: bytes, large: bool) -> None:
    pending = check(*first_batch(batch), COMPACT, NOW)
    assert isinstance(pending, PendingWalk)
    assert pending.large is large
    assert pending.run() == validate(batch, COMPACT, NOW)


def test_others_go_on_while_many_records_are_walked() -> None:
    count = 200_000
    batch = with_data(encode_record(0, 0, b"k", None) * count, count=count)
    pending = check(*first_batch(batch), replace(COMPACT, max_message_bytes=len(batch)), NOW)
    assert isinstance(pending, PendingWalk)
    assert turns_during(pending.run) > 20


def test_others_go_on_while_many_headers_are_walked() -> None:
    batch = many_headers(2_000_000)
    for config in COMPACT, LogConfig(compression_type="gzip"):
        pending = check(*first_batch(batch), replace(config, max_message_bytes=len(batch)), NOW)
        assert isinstance(pending, PendingWalk)
        assert turns_during(pending.run) > 20


@pytest.mark.parametrize(("size", "large"), [(3000, False), (5000, True)])
def test_to_compress_what_is_not_small_is_for_a_worker(size: int, large: bool) -> None:
    sent = build_batch([Record(0, NOW, b"k", bytes(size), [])])
    pending = check(*first_batch(sent), LogConfig(compression_type="gzip"), NOW)
    assert isinstance(pending, PendingWalk)
    assert pending.large is large


def test_headers_take_no_more_memory_than_their_bytes() -> None:
    """Where the batch is built anew: its first record has not the base timestamp."""
    sent = many_headers(100_000, timestamp_delta=1)
    tracemalloc.start()
    try:
        validate(sent, LogConfig(compression_type="gzip"), NOW)
        assert tracemalloc.get_traced_memory()[1] < 5 * len(sent)
    finally:
        tracemalloc.stop()


def test_what_is_no_whole_frame_is_refused_at_once() -> None:
    sent = build_batch(records(), compression=Compression.ZSTD)
    pending = check(*first_batch(edited(sent[:-3], batch_length=len(sent) - 3 - 12)), COMPACT, NOW)
    assert isinstance(pending, PendingWalk)
    assert pending.large is False
    with pytest.raises(InvalidBatch):
        pending.run()


def test_plain_batches_need_no_walk_whatever_their_size() -> None:
    for codec in Compression:
        sent = build_batch(records(1000), compression=codec)
        assert isinstance(check(*first_batch(sent), PLAIN, NOW), ValidatedBatch)
