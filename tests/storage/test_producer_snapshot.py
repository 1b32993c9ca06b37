"""The snapshot file, byte for byte Kafka's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.records.crc import crc32c
from kwire.storage.producer_entry import BatchMetadata, ProducerEntry
from kwire.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot, encode_snapshot

# Written by Apache Kafka 4.3.1 when it stopped: five idempotent producers on one partition.
KAFKAS_FILE = bytes.fromhex(
    "0001ff677e2c00000005"
    "00000000000001f4000100000002000000000000001700000002000001a1fc70ae1affffffffffffffffffffffff"
    "00000000000001f5000000000037000000000000001d00000002000001a1fc70ae1affffffffffffffffffffffff"
    "00000000000001f6000000000002000000000000002200000002000001a1fc70ae1affffffffffffffffffffffff"
    "00000000000001f7000000000004000000000000002900000002000001a1fc70ae1affffffffffffffffffffffff"
    "00000000000001f8000900000000000000000000002c00000000000001a1fc70ae1affffffffffffffffffffffff"
)

Fields = tuple[int, int, int, int, int, list[BatchMetadata]]


def fields(entry: ProducerEntry) -> Fields:
    return (
        entry.producer_id,
        entry.epoch,
        entry.coordinator_epoch,
        entry.last_timestamp,
        entry.txn_first_offset,
        entry.batches,
    )


def test_kafkas_own_file() -> None:
    entries = decode_snapshot(KAFKAS_FILE)
    timestamp = 0x1A1FC70AE1A
    assert [fields(entry) for entry in entries] == [
        (500, 1, -1, timestamp, -1, [BatchMetadata(2, 23, 2, timestamp)]),
        (501, 0, -1, timestamp, -1, [BatchMetadata(55, 29, 2, timestamp)]),
        (502, 0, -1, timestamp, -1, [BatchMetadata(2, 34, 2, timestamp)]),
        (503, 0, -1, timestamp, -1, [BatchMetadata(4, 41, 2, timestamp)]),
        (504, 9, -1, timestamp, -1, [BatchMetadata(0, 44, 0, timestamp)]),
    ]
    assert encode_snapshot(entries) == KAFKAS_FILE


def test_no_producers() -> None:
    assert encode_snapshot([]) == bytes.fromhex("000148674bc700000000")
    assert decode_snapshot(encode_snapshot([])) == []


def test_a_producer_of_whom_only_a_marker_is_known() -> None:
    entry = ProducerEntry(7, 3, coordinator_epoch=4, last_timestamp=99, txn_first_offset=12)
    data = encode_snapshot([entry])
    assert data[10:].hex() == (
        "00000000000000070003ffffffffffffffffffffffff00000000000000000000006300000004000000000000000c"
    )
    assert [fields(loaded) for loaded in decode_snapshot(data)] == [fields(entry)]


LONG = st.integers(0, 2**63 - 1)
INT = st.integers(0, 2**31 - 1)


@st.composite
def entries(draw: st.DrawFn) -> ProducerEntry:
    timestamp = draw(LONG)
    batches = [BatchMetadata(draw(INT), draw(LONG), draw(INT), timestamp)] if draw(st.booleans()) else []
    return ProducerEntry(
        draw(LONG), draw(st.integers(-1, 32767)), draw(st.integers(-1, 2**31 - 1)), timestamp, draw(LONG), batches
    )


@given(st.lists(entries(), max_size=5))
def test_round_trip(some: list[ProducerEntry]) -> None:
    assert [fields(entry) for entry in decode_snapshot(encode_snapshot(some))] == [fields(entry) for entry in some]


def test_only_the_last_batch_is_kept() -> None:
    batches = [BatchMetadata(index, 10 + index, 0, 5) for index in range(5)]
    (loaded,) = decode_snapshot(encode_snapshot([ProducerEntry(1, 0, -1, 5, -1, batches)]))
    assert loaded.batches == batches[-1:]


@given(st.integers(0, len(KAFKAS_FILE) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found(position: int, change: int) -> None:
    data = bytearray(KAFKAS_FILE)
    data[position] ^= change
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(bytes(data))


@given(st.integers(0, len(KAFKAS_FILE) - 1))
def test_a_torn_file_is_found(size: int) -> None:
    with pytest.raises(CorruptSnapshotError):
        decode_snapshot(KAFKAS_FILE[:size])


@pytest.mark.parametrize("count", [-1, 1, 2**31 - 1])
def test_a_count_that_lies(count: int) -> None:
    body = count.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptSnapshotError, match="does not hold"):
        decode_snapshot(b"\0\1" + crc32c(body).to_bytes(4, "big") + body)


def test_an_unknown_version() -> None:
    with pytest.raises(CorruptSnapshotError, match="version 2"):
        decode_snapshot(b"\0\2" + KAFKAS_FILE[2:])
