"""Records in a batch: built and read back in every codec, against other implementations, and malformed."""

from contextlib import suppress
from random import Random

import aiokafka.record.default_records as aiokafka_records
import kafka.record.default_records as kafka_python_records
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records import record as record_module
from kwire.protocol.records.builder import build_batch, encode_record, most_bytes
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import HEADER_SIZE, crc_matches, read_header, seal
from kwire.protocol.records.record import MIN_RECORD_SIZE, Record, iter_records, scan
from tests.records import simple_records

BYTES = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=10), BYTES), max_size=4)


@st.composite
def record_lists(draw: st.DrawFn, min_size: int = 1) -> tuple[int, list[Record]]:
    """(base offset, records with gaps between their offsets)"""
    base_offset = draw(st.integers(0, 2**62))
    deltas = sorted(draw(st.sets(st.integers(0, 2**31 - 1) | st.integers(0, 300), min_size=min_size, max_size=8)))
    timestamps = st.integers(-1, 2**62)
    return base_offset, [
        Record(base_offset + delta, draw(timestamps), draw(BYTES), draw(BYTES), draw(HEADERS)) for delta in deltas
    ]


@pytest.mark.parametrize("codec", Compression)
@given(drawn=record_lists())
def test_round_trip(codec: Compression, drawn: tuple[int, list[Record]]) -> None:
    base_offset, records = drawn
    batch = build_batch(records, base_offset=base_offset, compression=codec, leader_epoch=7)
    assert list(iter_records(batch)) == records
    assert list(iter_records(memoryview(batch + b"what follows"))) == records
    header = read_header(batch)
    assert header.size == len(batch)
    assert crc_matches(header, batch)
    assert header.codec is codec
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (base_offset, records[-1].offset, 7)
    assert header.base_timestamp == records[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert header.count == len(records)


def as_tuple(record: object) -> tuple[object, ...]:
    return tuple(getattr(record, name) for name in ("offset", "timestamp", "key", "value", "headers"))


@pytest.mark.parametrize("module", [kafka_python_records, aiokafka_records], ids=["kafka-python", "aiokafka"])
@pytest.mark.parametrize("codec", Compression)
@settings(max_examples=30)
@given(drawn=record_lists())
def test_other_clients_read_what_is_built(module, codec: Compression, drawn: tuple[int, list[Record]]) -> None:
    base_offset, records = drawn
    batch = build_batch(records, base_offset=base_offset, compression=codec)
    theirs = module.DefaultRecordBatch(bytearray(batch))
    assert theirs.validate_crc()
    # aiokafka takes header keys for UTF-8 text, as kwire does; both give headers as pairs
    assert [(*as_tuple(record)[:4], [tuple(pair) for pair in record.headers]) for record in theirs] == [
        tuple(record) for record in records
    ]


@pytest.mark.parametrize("module", [kafka_python_records, aiokafka_records], ids=["kafka-python", "aiokafka"])
@pytest.mark.parametrize("codec", Compression)
@settings(max_examples=30)
@given(drawn=record_lists())
def test_what_other_clients_build_is_read(module, codec: Compression, drawn: tuple[int, list[Record]]) -> None:
    _, records = drawn
    # aiokafka's builder takes a timestamp of -1 for none given, and both number from 0
    records = [record._replace(offset=index, timestamp=abs(record.timestamp)) for index, record in enumerate(records)]
    builder = module.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for record in records:
        builder.append(*record)
    batch = bytes(builder.build())
    assert list(iter_records(batch)) == records
    assert crc_matches(read_header(batch), batch)


@pytest.mark.parametrize("codec", Compression)
def test_uncompressed_bytes_equal_kafka_pythons(codec: Compression) -> None:
    records = [Record(index, 1_700_000_000_000 + index, b"k", b"v" * index, [("h", None)]) for index in range(5)]
    builder = kafka_python_records.DefaultRecordBatchBuilder(2, 0, True, 9, 1, 5, 1 << 20)
    for record in records:
        builder.append(*record)
    theirs = bytes(builder.build())
    ours = build_batch(records, leader_epoch=0, producer_id=9, producer_epoch=1, base_sequence=5, transactional=True)
    assert ours[16:] == theirs[16:]  # theirs has a leader epoch of 0 or -1, which is the broker's to set


def test_log_append_time_is_every_records_time() -> None:
    records = simple_records([(None, b"a"), (None, b"b")], 1000)
    batch = build_batch(records, log_append_time=5000)
    header = read_header(batch)
    assert (header.log_append_time, header.base_timestamp, header.max_timestamp) == (True, 1000, 5000)
    assert [record.timestamp for record in iter_records(batch)] == [5000, 5000]


def test_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    records = simple_records([(b"k", None), (b"l", None)], 1000)
    batch = build_batch(records, delete_horizon=777)
    header = read_header(batch)
    assert (header.has_delete_horizon, header.base_timestamp, header.max_timestamp) == (True, 777, 1000)
    assert list(iter_records(batch)) == records


@pytest.mark.parametrize("codec", Compression)
def test_the_empty_batch_that_compaction_leaves(codec: Compression) -> None:
    batch = build_batch(
        [], base_offset=10, last_offset=14, producer_id=3, producer_epoch=0, base_sequence=2, compression=codec
    )
    header = read_header(batch)
    assert len(batch) == HEADER_SIZE
    assert (header.count, header.next_offset, header.last_sequence, header.base_timestamp) == (0, 15, 6, -1)
    assert list(iter_records(batch)) == []


def test_smallest_record() -> None:
    assert len(encode_record(0, 0, None, None)) == MIN_RECORD_SIZE


@given(*[st.none() | st.binary(max_size=300) | st.integers(0, 20_000).map(bytes)] * 2)
def test_a_record_is_never_larger_than_it_is_said_to_be(key, value):
    assert most_bytes(key, value) == len(encode_record(2**40 - 1, 2**31 - 1, key, value))


def test_header_keys_that_are_not_utf8_are_read() -> None:
    batch = build_batch([Record(0, 0, None, None, [("abc", b"x")])]).replace(b"abc", b"a\xff\xfe")
    assert next(iter_records(batch)).headers == [("a��", b"x")]


GOOD = build_batch([Record(index, 1000, b"key", b"value", [("h", b"x")]) for index in range(3)])
DATA = GOOD[HEADER_SIZE:]


def with_data(data: bytes, count: int = 3) -> bytes:
    header = read_header(GOOD)._replace(batch_length=49 + len(data), count=count, last_offset_delta=count - 1)
    return seal(header, data) + data


@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param(DATA, 2, id="a record too many"),
        pytest.param(DATA, 4, id="a record too few"),
        pytest.param(DATA, -1, id="negative count"),
        pytest.param(DATA[:-1], 3, id="cut short"),
        pytest.param(DATA + b"\0", 3, id="a byte too many"),
        pytest.param(bytes([DATA[0] + 2]) + DATA[1:], 3, id="length too large"),
        pytest.param(bytes([DATA[0] - 2]) + DATA[1:], 3, id="length too small"),
        pytest.param(b"\x01" + DATA[1:], 3, id="negative length"),
        pytest.param(b"\xff" * 20, 3, id="varint without end"),
        pytest.param(b"\x0e\x00\x00\x00\x7e\x01\x00\x00", 1, id="key longer than the record"),
        pytest.param(b"\x0e\x00\x00\x00\x01\x7e\x00\x00", 1, id="value longer than the record"),
        pytest.param(b"\x0c\x00\x00\x00\x01\x01\x01", 1, id="negative header count"),
        pytest.param(b"\x0c\x00\x00\x00\x01\x01\x7e", 1, id="more headers than bytes"),
        pytest.param(b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 1, id="header without key"),
        pytest.param(b"", 1, id="nothing"),
    ],
)
def test_records_that_do_not_fit_their_batch(data: bytes, count: int) -> None:
    for codec in Compression:
        with pytest.raises(CorruptBatchError) as caught:
            list(iter_records(recoded(with_data(data, count), codec)))
        assert caught.value.code is ErrorCode.INVALID_RECORD


def recoded(batch: bytes, codec: Compression) -> bytes:
    """The same record data, whatever it is, in another codec."""
    from kwire.protocol.records.compression import compress

    data = compress(codec, batch[HEADER_SIZE:])
    header = read_header(batch)._replace(attributes=int(codec), batch_length=49 + len(data))
    return seal(header, data) + data


def test_the_records_before_the_bad_one_come_first() -> None:
    records = iter_records(with_data(DATA[:-1]))
    assert [next(records).offset, next(records).offset] == [0, 1]
    with pytest.raises(CorruptBatchError):
        next(records)


@pytest.mark.parametrize("size", [0, 60, len(GOOD) - 1])
def test_no_whole_batch(size: int) -> None:
    with pytest.raises(CorruptBatchError) as caught:
        list(iter_records(GOOD[:size]))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_older_formats_are_not_read() -> None:
    for magic in (b"\x00", b"\x01", b"\x03"):
        with pytest.raises(CorruptBatchError):
            list(iter_records(GOOD[:16] + magic + GOOD[17:]))


def test_data_is_bounded_when_decompressed() -> None:
    batch = build_batch([Record(0, 0, None, bytes(100_000), [])], compression=Compression.ZSTD)
    with pytest.raises(CorruptBatchError):
        list(iter_records(batch, limit=50_000))


@given(st.binary(max_size=200), st.integers(-3, 50))
def test_scanning_garbage_raises_only_our_error(data: bytes, count: int) -> None:
    with suppress(CorruptBatchError):
        for layout in scan(data, count):
            assert all(isinstance(field, int) for field in layout)


@pytest.mark.parametrize("codec", Compression)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=5), st.integers(0, 400))
def test_corruption_raises_only_our_error(codec: Compression, changes: list[tuple[int, int]], cut: int) -> None:
    batch = bytearray(build_batch(list(iter_records(GOOD)), compression=codec))
    for position, value in changes:
        batch[position % len(batch)] = value
    for candidate in (bytes(batch), bytes(batch[: len(batch) - cut]) if cut < len(batch) else b""):
        with suppress(CorruptBatchError):
            for record in iter_records(candidate):
                assert isinstance(record, Record)


@pytest.mark.parametrize("field", ["key", "value"])
def test_keys_and_values_are_bytes_whatever_the_buffer(field: str) -> None:
    for buffer in (GOOD, bytearray(GOOD), memoryview(GOOD)):
        assert all(type(getattr(record, field)) is bytes for record in iter_records(buffer))


def test_a_large_batch_that_was_taken_may_unpack_to_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module, "DEFAULT_LIMIT", 1000)
    noise = Random(1).randbytes(5000)
    large = build_batch([Record(0, 0, None, noise, [])], compression=Compression.GZIP)
    assert [found.value for found in iter_records(large)] == [noise]
    with pytest.raises(CorruptBatchError, match="unpacks to more than 1000 bytes"):
        list(iter_records(build_batch([Record(0, 0, None, bytes(5000), [])], compression=Compression.GZIP)))
    with pytest.raises(CorruptBatchError, match="unpacks to more than 1000 bytes"):
        list(iter_records(large, limit=1000))
