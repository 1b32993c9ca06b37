"""Batches that the topic wants in another codec.

The expected codes and messages are what Apache Kafka 4.3.1 answered.
"""

from dataclasses import replace

import pytest

from kwire.config.topic import LogConfig
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.header import read_header
from kwire.protocol.records.record import Record, iter_records
from kwire.storage.validated import Origin

from .produced import APPEND_TIME, BIG, MANY, NOW, OK, edited, refusal, stored, timed, validate


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
            len(stored(validate(sent, replace(LogConfig(compression_type=name), **{field: level}), NOW)))
            for level in (fast, small)
        ]
        assert sizes[1] <= sizes[0] < len(sent), name
    assert len(stored(validate(sent, LogConfig(compression_type="snappy"), NOW))) < len(sent)


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
