"""Records of __cluster_metadata and their frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.codec.errors import MalformedError, UnsupportedVersionError
from kwire.protocol.framed import UnknownRecord, encode_framed
from kwire.protocol.metadata_records.partition import NO_LEADER_CHANGE, PartitionChangeRecord
from kwire.protocol.metadata_records.record_types import METADATA_RECORD_TYPES, PASSING_RECORD_TYPES
from kwire.protocol.metadata_records.serde import decode_record
from kwire.protocol.metadata_records.topic import TopicRecord
from tests.protocol.any_message import any_message

ID = bytes(range(16))


def test_a_topic() -> None:
    frame = b"\1\2\0" + b"\7orders" + ID + b"\0"
    assert decode_record(frame) == TopicRecord(name="orders", topic_id=ID)
    assert encode_framed(TopicRecord(name="orders", topic_id=ID), 0) == frame


def test_what_did_not_change() -> None:
    change = decode_record(encode_framed(PartitionChangeRecord(partition_id=2, topic_id=ID), 2))
    assert isinstance(change, PartitionChangeRecord)
    assert (change.isr, change.leader, change.replicas) == (None, NO_LEADER_CHANGE, None)


@given(data=st.data())
def test_every_type_comes_back(data: st.DataObject) -> None:
    record_type = data.draw(st.sampled_from(list(METADATA_RECORD_TYPES.values())))
    version = data.draw(st.integers(record_type.min_version, record_type.max_version))
    message = data.draw(any_message(record_type, version))
    assert decode_record(encode_framed(message, version)) == message


@pytest.mark.parametrize("number", PASSING_RECORD_TYPES)
def test_a_type_that_means_nothing_elsewhere(number: int) -> None:
    assert decode_record(bytes((1, number, 0)) + b"whatever") is None


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (b"\2\2\0", UnknownRecord),
        (b"\1\x7f\0", UnknownRecord),
        (b"\1\2\1", UnsupportedVersionError),
        (b"", MalformedError),
        (b"\1\x82", MalformedError),
        (b"\1\2\0\7ord", MalformedError),
    ],
)
def test_what_is_not_understood(frame: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_record(frame)
