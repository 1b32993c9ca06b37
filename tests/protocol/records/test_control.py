"""Transaction markers."""

import pytest
from aiokafka.record.control_record import ABORT_MARKER, COMMIT_MARKER, ControlRecord

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records.builder import build_batch
from kwire.protocol.records.control import (
    ControlType,
    EndTxnMarker,
    build_end_txn_marker,
    control_type,
    read_end_txn_marker,
)
from kwire.protocol.records.header import crc_matches, read_header
from kwire.protocol.records.record import Record, iter_records


@pytest.mark.parametrize("commit", [True, False])
def test_round_trip(commit: bool) -> None:
    batch = build_end_txn_marker(
        5, 3, commit=commit, coordinator_epoch=9, timestamp=1234, base_offset=77, leader_epoch=2
    )
    assert read_end_txn_marker(batch) == EndTxnMarker(commit, 9, 1234, 77)
    header = read_header(batch)
    assert (header.control, header.transactional, header.count, header.leader_epoch) == (True, True, 1, 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 3, -1)
    assert crc_matches(header, batch)
    assert len(batch) == 78  # as Kafka's own markers


def test_another_client_understands_the_marker() -> None:
    for commit, marker in ((True, COMMIT_MARKER), (False, ABORT_MARKER)):
        record = next(iter_records(build_end_txn_marker(5, 3, commit=commit, coordinator_epoch=9, timestamp=1)))
        assert ControlRecord.parse(record.key) == marker


def test_a_batch_emptied_by_compaction_has_no_marker() -> None:
    assert read_end_txn_marker(build_batch([], last_offset=0, producer_id=5, control=True)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\0"),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\xff\xff\0\0", b"\0\0\0\0\0\0"),
        (b"\0\0\0\x02", b"\0\0\0\0\0\0"),
        (b"\0\0\0\x01", None),
        (b"\0\0\0\x01", b"\0\0\0\0\0"),
        (b"\0\0\0\x01", b"\xff\xff\0\0\0\0"),
    ],
)
def test_what_is_no_marker(key: bytes | None, value: bytes | None) -> None:
    batch = build_batch([Record(0, 0, key, value, [])], control=True, producer_id=5)
    with pytest.raises(CorruptBatchError) as caught:
        read_end_txn_marker(batch)
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_later_versions_are_read_by_their_first_fields() -> None:
    batch = build_batch([Record(0, 8, b"\0\x01\0\x01more", b"\0\x01\0\0\0\x04more", [])], control=True, producer_id=5)
    assert read_end_txn_marker(batch) == EndTxnMarker(True, 4, 8, 0)


def test_types() -> None:
    assert control_type(b"\0\0\0\x02") is ControlType.LEADER_CHANGE
    assert control_type(b"\0\0\0\x63") is ControlType.UNKNOWN
    assert control_type(b"\0\0\xff\xf0") is ControlType.UNKNOWN
