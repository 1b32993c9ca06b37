"""The 61 bytes of a batch header, and walking from batch to batch."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.compression import Compression
from kwire.protocol.records.header import (
    HEADER_SIZE,
    MAX_SEQUENCE,
    BatchHeader,
    add_sequence,
    crc_matches,
    iter_batches,
    read_header,
    seal,
    subtract_sequence,
    write_prefix,
)
from tests.records import simple_records

# Written by Apache Kafka 4.3.1 with compression.type=gzip, from three records with 3, 7 and 1 ms before the last.
KAFKAS_BATCH = bytes.fromhex(
    "000000000000000000000062000000000273254188000100000002000001a1fc66618d000001a1fc66618fffffffffffffffffffffffffffff"
    "000000031f8b08000000000000ff9360606060ca664a6462ca6032e463606762644a62e063606161aa60640000a239540f1d000000"
)


def test_fields_of_kafkas_own_batch() -> None:
    header = read_header(KAFKAS_BATCH)
    assert header == BatchHeader(
        base_offset=0,
        batch_length=98,
        leader_epoch=0,
        magic=2,
        crc=0x73254188,
        attributes=1,
        last_offset_delta=2,
        base_timestamp=0x1A1FC66618D,
        max_timestamp=0x1A1FC66618F,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=3,
    )
    assert header.codec is Compression.GZIP
    assert header.size == len(KAFKAS_BATCH) == 110
    assert (header.last_offset, header.next_offset, header.last_sequence) == (2, 3, -1)
    flags = (header.log_append_time, header.transactional, header.control, header.has_delete_horizon)
    assert flags == (False, False, False, False)
    assert crc_matches(header, KAFKAS_BATCH)
    assert seal(header._replace(crc=0), KAFKAS_BATCH[HEADER_SIZE:]) == KAFKAS_BATCH[:HEADER_SIZE]


HEADERS = st.builds(
    BatchHeader,
    base_offset=st.integers(0, 2**63 - 1),
    batch_length=st.integers(-(2**31), 2**31 - 1),
    leader_epoch=st.integers(-1, 2**31 - 1),
    magic=st.integers(-128, 127),
    crc=st.integers(0, 2**32 - 1),
    attributes=st.integers(-(2**15), 2**15 - 1),
    last_offset_delta=st.integers(-(2**31), 2**31 - 1),
    base_timestamp=st.integers(-(2**63), 2**63 - 1),
    max_timestamp=st.integers(-(2**63), 2**63 - 1),
    producer_id=st.integers(-1, 2**63 - 1),
    producer_epoch=st.integers(-1, 2**15 - 1),
    base_sequence=st.integers(-1, 2**31 - 1),
    count=st.integers(-(2**31), 2**31 - 1),
)


@given(HEADERS, st.binary(max_size=5))
def test_round_trip(header: BatchHeader, before: bytes) -> None:
    data = struct.pack(">qiibIhiqqqhii", *header)
    assert len(data) == HEADER_SIZE
    assert read_header(before + data, len(before)) == header
    assert type(read_header(data)) is BatchHeader
    assert write_prefix(header.base_offset, header.batch_length, header.leader_epoch) == data[:16]


@pytest.mark.parametrize(
    ("attributes", "flags"),
    [(0x08, "log_append_time"), (0x10, "transactional"), (0x20, "control"), (0x40, "has_delete_horizon")],
)
def test_flags(attributes: int, flags: str) -> None:
    header = read_header(KAFKAS_BATCH)._replace(attributes=attributes)
    names = ("log_append_time", "transactional", "control", "has_delete_horizon")
    assert [name for name in names if getattr(header, name)] == [flags]


@pytest.mark.parametrize("code", [5, 6, 7])
def test_unknown_codec(code: int) -> None:
    with pytest.raises(CorruptBatchError) as caught:
        _ = read_header(KAFKAS_BATCH)._replace(attributes=code).codec
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_too_short() -> None:
    with pytest.raises(CorruptBatchError) as caught:
        read_header(KAFKAS_BATCH[:60])
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    with pytest.raises(CorruptBatchError):
        read_header(KAFKAS_BATCH, 60)


def test_the_crc_covers_what_follows_it_and_nothing_before() -> None:
    header = read_header(KAFKAS_BATCH)
    for position in range(len(KAFKAS_BATCH)):
        changed = bytearray(KAFKAS_BATCH)
        changed[position] ^= 0x40
        assert crc_matches(header, changed) == (position < 21), position


def test_sequences_wrap() -> None:
    assert add_sequence(MAX_SEQUENCE, 1) == 0
    assert add_sequence(MAX_SEQUENCE - 1, 3) == 1
    assert subtract_sequence(0, 1) == MAX_SEQUENCE
    assert subtract_sequence(1, 3) == MAX_SEQUENCE - 1
    header = read_header(KAFKAS_BATCH)._replace(producer_id=1, base_sequence=MAX_SEQUENCE - 1)
    assert header.last_sequence == 0


@given(st.integers(0, MAX_SEQUENCE), st.integers(0, MAX_SEQUENCE))
def test_sequence_arithmetic_is_inverse(sequence: int, delta: int) -> None:
    total = add_sequence(sequence, delta)
    assert 0 <= total <= MAX_SEQUENCE
    assert subtract_sequence(total, delta) == sequence


BATCHES = [
    build_batch(
        simple_records([(b"k", b"v" * number)] * number, 1000, base_offset=10 * number), base_offset=10 * number
    )
    for number in (1, 2, 3)
]


@given(st.integers(0, sum(map(len, BATCHES))))
def test_whole_batches_of_a_cut_buffer(size: int) -> None:
    ends = [len(b"".join(BATCHES[:number])) for number in (1, 2, 3)]
    found = list(iter_batches(b"".join(BATCHES)[:size]))
    assert [bytes(batch) for _, batch in found] == BATCHES[: sum(end <= size for end in ends)]
    assert [header.base_offset for header, _ in found] == [10, 20, 30][: len(found)]


@pytest.mark.parametrize(
    "bad",
    [
        bytes(30),
        b"\xff" * 30,
        BATCHES[0][:16] + b"\x03" + BATCHES[0][17:],
        BATCHES[0][:16] + b"\x01" + BATCHES[0][17:],
        BATCHES[0][:8] + (14).to_bytes(4, "big") + BATCHES[0][12:],
    ],
)
def test_what_is_no_batch_is_corrupt(bad: bytes) -> None:
    batches = iter_batches(BATCHES[0] + bad)
    assert bytes(next(batches)[1]) == BATCHES[0]
    with pytest.raises(CorruptBatchError) as caught:
        next(batches)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
