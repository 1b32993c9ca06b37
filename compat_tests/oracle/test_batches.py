"""Produce: batches that are not as they should be, or that a topic does not take."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.cases import BASE_TIME
from compat_tests.oracle.asking import altered, batch, fetch, produce
from compat_tests.oracle.both import Both
from compat_tests.oracle.sides import Side
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.builder import build_batch, encode_record
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import HEADER_SIZE, read_header, seal
from kwire.protocol.records.record import Record

pytestmark = pytest.mark.xdist_group("oracle")

HOUR = 3_600_000
CODECS = [codec for codec in Compression if codec]


def with_records(data: bytes, count: int, **fields: Any) -> bytes:
    """A batch whose records are these bytes, with a header that claims `count` of them."""
    header = read_header(batch(1))._replace(
        batch_length=HEADER_SIZE - 12 + len(data), last_offset_delta=count - 1, count=count, **fields
    )
    return seal(header, data) + data


def old_message(magic: int) -> bytes:
    """A message of the formats before record batches, as far as its header goes."""
    timestamp = BASE_TIME.to_bytes(8) if magic else b""
    body = bytes(4) + bytes([magic, 0]) + timestamp + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x05value"
    return bytes(8) + len(body).to_bytes(4) + body


ONE = batch(1)
MANY = batch(12)
GARBAGE = b"this is nothing that anybody compressed"
PLAIN = b"".join(encode_record(0, index, b"k", b"v") for index in range(3))

REFUSED: dict[str, bytes] = {
    "empty": b"",
    "two batches": ONE + ONE,
    "a part of a header": ONE[:40],
    "a part of the records": ONE[:-3],
    "12 bytes": ONE[:12],
    "garbage": bytes(range(200)),
    "zeroes": bytes(200),
    "a batch and zeroes": ONE + bytes(100),
    "wrong crc": altered(ONE, crc=1),
    "wrong crc of many": altered(MANY, crc=1),
    "magic 0": altered(ONE, magic=0),
    "magic 1": altered(ONE, magic=1),
    "magic 3": altered(ONE, magic=3),
    "magic -1": altered(ONE, magic=-1),
    "a message of magic 0": old_message(0),
    "a message of magic 1": old_message(1),
    "a batch and a message of magic 1": ONE + old_message(1),
    "length too short": altered(ONE, batch_length=20),
    "length 0": altered(ONE, batch_length=0),
    "negative length": altered(ONE, batch_length=-1),
    "length too long": altered(ONE, batch_length=500),
    "length of a header": altered(ONE, batch_length=49),
    "base offset 5": altered(ONE, base_offset=5),
    "base offset -1": altered(ONE, base_offset=-1),
    "count 0": altered(ONE, count=0),
    "count 0, delta -1": altered(ONE, count=0, last_offset_delta=-1),
    "count -1": altered(ONE, count=-1),
    "count 2": altered(ONE, count=2),
    "count and delta too large": altered(ONE, count=2, last_offset_delta=1),
    "count and delta absurd": altered(ONE, count=2**31 - 1, last_offset_delta=2**31 - 2),
    "count and delta too small": altered(MANY, count=2, last_offset_delta=1),
    "delta too large": altered(ONE, last_offset_delta=5),
    "delta negative": altered(ONE, last_offset_delta=-5),
    "no records": build_batch([]),
    "control": altered(ONE, attributes=0x20),
    "transactional and control": altered(ONE, attributes=0x30, producer_id=1, producer_epoch=0, base_sequence=0),
    "transactional without an id": altered(ONE, attributes=0x10),
    "codec 5": altered(ONE, attributes=5),
    "codec 7": altered(MANY, attributes=7),
    "sequence -1 with an id": altered(ONE, producer_id=5, producer_epoch=0, base_sequence=-1),
    "sequence -5 with an id": altered(ONE, producer_id=5, producer_epoch=0, base_sequence=-5),
    "record too long": with_records(b"\x7e" + PLAIN[1:], 3),
    "record of negative length": with_records(b"\x01" + PLAIN[1:], 3),
    "a byte after the records": with_records(PLAIN + b"\0", 3),
    "fewer records": with_records(PLAIN, 4),
    "more records": with_records(PLAIN, 2),
    "log append time": altered(ONE, attributes=0x08),
} | {
    f"{codec.config_name}: {what}": blob
    for codec in CODECS
    for what, blob in {
        "garbage": with_records(GARBAGE, 1, attributes=codec),
        "nothing": with_records(b"", 1, attributes=codec),
        "no records": with_records(b"", 0, attributes=codec),
    }.items()
    if codec is not Compression.SNAPPY or what == "no records"
}
"""What no topic takes."""

TAKEN: dict[str, bytes] = {
    "a batch and a part of one": ONE + ONE[:30],
    "a batch and a byte": ONE + b"\0",
    "leader epoch 7": altered(ONE, leader_epoch=7),
    "unused attributes": altered(ONE, attributes=0x7F00),
    "delete horizon": altered(ONE, attributes=0x40),
    "an epoch without an id": altered(ONE, producer_id=-1, producer_epoch=3, base_sequence=4),
    "producer id -2": altered(ONE, producer_id=-2),
    "epoch -1 with an id": altered(ONE, producer_id=900_000, producer_epoch=-1, base_sequence=0),
    "offsets all 0": with_records(encode_record(0, 0, b"k", b"v") * 3, 3),
    "offsets backwards": with_records(b"".join(encode_record(0, 2 - i, b"k", b"v") for i in range(3)), 3),
    "offsets with a gap": with_records(encode_record(0, 0, b"k", b"v") + encode_record(0, 5, b"k", b"v"), 2),
    "max timestamp too low": altered(batch(3), max_timestamp=BASE_TIME - 1000),
    "max timestamp -1": altered(batch(3), max_timestamp=-1),
    "no timestamps": batch(2, start=-1, step=0),
    "negative timestamp": batch(2, start=-5),
    "a header key that is not UTF-8": with_records(b"\x16\0\0\0\x02k\x02v\x02\x02\xff\0", 1),
    "record attributes": with_records(b"\x10\x7f\0\0\x02k\x02v\0", 1),
} | {codec.config_name: batch(20, compression=codec) for codec in Compression}
"""What is odd, or merely rare, and taken all the same."""

NOT_LOOKED_AT: dict[str, bytes] = {
    "count and delta too large for many": altered(MANY, count=13, last_offset_delta=12),
    "max timestamp too high": altered(batch(3), max_timestamp=BASE_TIME + 1000),
    "a negative number of headers": with_records(encode_record(0, 0, b"k", b"v")[:-1] + b"\x01", 1),
    "a header too many": with_records(encode_record(0, 0, b"k", b"v")[:-1] + b"\x02", 1),
    "a null header key": with_records(b"\x14\0\0\0\x02k\x02v\x02\x01\0", 1),
    "snappy: garbage": with_records(GARBAGE, 1, attributes=Compression.SNAPPY),
    "snappy: nothing": with_records(b"", 1, attributes=Compression.SNAPPY),
} | {
    f"{codec.config_name}: {what}": blob
    for codec in CODECS
    for what, blob in {
        "a part": with_records(batch(20, compression=codec)[HEADER_SIZE:-8], 20, attributes=codec),
        "fewer records": with_records(batch(3, compression=codec)[HEADER_SIZE:], 4, attributes=codec),
        "offsets all 0": build_batch([Record(0, BASE_TIME, b"k", b"v", [])] * 3, compression=codec, last_offset=2),
    }.items()
}
"""What Apache Kafka refuses, or mends, since it looks into the records."""


def test_batches_that_are_refused(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, append_time = side.topic(), side.topic("append-time", message_timestamp_type="LogAppendTime")
        for what, blob in REFUSED.items():
            for version in (3, 7, 8, 13):
                side.ask(produce(side, topic, blob, version), version, note=what)
            if what != "log append time":
                side.ask(produce(side, append_time, blob), note=f"{what}, LogAppendTime")
        for name in (topic, append_time):
            side.ask(fetch(side, name), note="nothing")

    both.agree(scenario, "why a batch is refused")


def test_batches_that_are_taken(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic, append_time = side.topic(), side.topic("append-time", message_timestamp_type="LogAppendTime")
        for what, blob in TAKEN.items():
            for name in (topic, append_time):
                side.ask(produce(side, name, blob), note=f"{what}, {name}")
        for name in (topic, append_time):
            side.ask(fetch(side, name), note="all")

    both.agree(scenario)


def test_a_batch_marked_as_of_append_time(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(message_timestamp_type="LogAppendTime")
        side.ask(produce(side, topic, altered(batch(2), attributes=0x08)))
        side.ask(fetch(side, topic))

    both.agree(scenario)


def test_records_that_are_not_looked_at(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic()
        for what, blob in NOT_LOOKED_AT.items():
            side.ask(produce(side, topic, blob), note=what)
        side.ask(fetch(side, topic))

    both.agree(scenario, "records not looked at")


def test_records_that_are_looked_at_for_a_reason(both: Both) -> None:
    """The same batches, where the topic demands another codec or has limits of timestamps."""

    def scenario(side: Side) -> None:
        limited = side.topic("limited", message_timestamp_before_max_ms=str(10**12))
        recompressed = side.topic("recompressed", compression_type="lz4")
        for what, blob in NOT_LOOKED_AT.items():
            for name in (limited, recompressed):
                if "lz4" not in what or name == limited:
                    side.ask(produce(side, name, blob), note=f"{what}, {name}")
        for name in (limited, recompressed):
            side.ask(fetch(side, name))

    both.agree(scenario, "why a batch is refused")


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_topics_with_a_codec_of_their_own(both: Both, codec: str) -> None:
    def scenario(side: Side) -> None:
        create_time = side.topic(compression_type=codec)
        append_time = side.topic("append-time", compression_type=codec, message_timestamp_type="LogAppendTime")
        for name in (create_time, append_time):
            for sent in Compression:
                side.ask(produce(side, name, batch(5, compression=sent)), note=f"{sent.name} {name}")
            for what, blob in TAKEN.items():
                side.ask(produce(side, name, blob), note=f"{what} {name}")
            side.ask(fetch(side, name))

    # A topic without compression takes what came without compression as it is.
    both.agree(scenario, *([] if codec == "uncompressed" else ["why a batch is refused"]))


def test_limits_of_timestamps(both: Both) -> None:
    def scenario(side: Side) -> None:
        hour = str(HOUR)
        topics = {
            "default": side.topic("default"),
            "an hour before": side.topic("before", message_timestamp_before_max_ms=hour),
            "an hour after": side.topic("after", message_timestamp_after_max_ms=hour),
            "not after": side.topic("none-after", message_timestamp_after_max_ms="0"),
            "append time": side.topic(
                "append", message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=hour
            ),
            "an hour before, lz4": side.topic(
                "before-lz4", message_timestamp_before_max_ms=hour, compression_type="lz4"
            ),
        }
        times = {
            "now": side.now,
            "half an hour ago": side.now - HOUR // 2,
            "two hours ago": side.now - 2 * HOUR,
            "in half an hour": side.now + HOUR // 2,
            "in two hours": side.now + 2 * HOUR,
            "in a year": side.now + 365 * 24 * HOUR,
            "no time": -1,
        }
        for where, topic in topics.items():
            for when, time_ms in times.items():
                for version in (7, 8, 13):
                    blob = batch(2, start=time_ms, step=0)
                    side.ask(produce(side, topic, blob, version), version, note=f"{when}, {where}")
            mixed = [Record(i, time_ms, b"k", b"v", []) for i, time_ms in enumerate(times.values())]
            side.ask(produce(side, topic, build_batch(mixed)), note=f"all times, {where}")
            side.ask(produce(side, topic, build_batch(mixed * 2, last_offset=13)), note=f"all times twice, {where}")
            side.ask(fetch(side, topic), note=where)

    both.agree(scenario)


def test_compacted_topics(both: Both) -> None:
    def scenario(side: Side) -> None:
        keyed, keyless = Record(0, BASE_TIME, b"k", None, []), Record(0, BASE_TIME, None, b"v", [])
        for policy in ("compact", "compact,delete", "delete"):
            topic = side.topic(policy.replace(",", "-"), cleanup_policy=policy)
            for records in ([keyed], [keyless], [keyed, keyless], [keyless] * 5, [keyed, keyless] * 6):
                blob = build_batch([record._replace(offset=i) for i, record in enumerate(records)])
                for version in (7, 8, 13):
                    side.ask(produce(side, topic, blob, version), version, note=f"{len(records)} {policy}")
            lz4 = build_batch([keyed, keyless._replace(offset=1)], compression=Compression.LZ4)
            side.ask(produce(side, topic, lz4), note=f"compressed {policy}")
            side.ask(fetch(side, topic))

    both.agree(scenario)


def test_batches_that_are_too_large(both: Both) -> None:
    def scenario(side: Side) -> None:
        topic = side.topic(max_message_bytes="1000")
        unlimited = side.topic("unlimited", max_message_bytes="100000000", segment_bytes="1048576")
        recompressed = side.topic("uncompressed", max_message_bytes="1000", compression_type="uncompressed")
        overhead = len(batch(1)) - len(b"value 0")
        for size in (1, 900, 1000 - overhead - 2, 1000 - overhead - 1, 1000 - overhead, 1001 - overhead, 5000):
            for version in (3, 8, 13):
                side.ask(produce(side, topic, batch(1, size=size), version), version, note=f"{size}")
        side.ask(produce(side, recompressed, batch(1, size=5000, compression=Compression.GZIP)), note="recompressed")
        side.ask(produce(side, topic, altered(batch(1, size=5000), crc=1)), note="and corrupt")
        side.ask(produce(side, unlimited, batch(1, size=2_000_000)), note="than a segment")
        side.ask(fetch(side, topic))

    both.agree(scenario, "why a batch is refused")


def test_null_records(both: Both) -> None:
    """Apache Kafka does not answer at all, so that only kwire is asked."""
    side = both.sides("null-records")[1]
    topic = side.topic()
    for version in range(3, 14):
        (answer,) = side.call(produce(side, topic, None, version), version).responses[0].partition_responses
        assert answer.error_code == ErrorCode.INVALID_RECORD
    side.close()
