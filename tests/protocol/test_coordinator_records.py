"""Keys and values of the coordinators' records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kwire.protocol import codec
from kwire.protocol.coordinator_records.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from kwire.protocol.coordinator_records.group_metadata import GroupMetadataValue, MemberMetadata
from kwire.protocol.coordinator_records.legacy_offset_commit import LegacyOffsetCommitKey
from kwire.protocol.coordinator_records.offset_commit import OffsetCommitKey, OffsetCommitValue
from kwire.protocol.coordinator_records.record_types import (
    GROUP_RECORD_TYPES,
    TRANSACTION_RECORD_TYPES,
    RecordType,
    RecordTypes,
)
from kwire.protocol.coordinator_records.serde import UnknownRecordTypeError, decode_record, encode_key, encode_value
from kwire.protocol.coordinator_records.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from kwire.protocol.version_prefixed import read_prefix
from tests.protocol.any_message import any_message

OF_TOPIC = {"__consumer_offsets": GROUP_RECORD_TYPES, "__transaction_state": TRANSACTION_RECORD_TYPES}
KEY = b"\0\1" + b"\0\1g" + b"\0\1t" + b"\0\0\0\3"
VALUE = b"\0\3" + bytes(7) + b"\7" + b"\xff\xff\xff\xff" + b"\0\0" + bytes(8)


@pytest.mark.parametrize(
    ("record_types", "record_type"),
    [
        pytest.param(record_types, record_type, id=record_type.key.__name__.removesuffix("Key"))
        for record_types in OF_TOPIC.values()
        for record_type in record_types.values()
    ],
)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_record_comes_back(record_types: RecordTypes, record_type: RecordType, data: st.DataObject) -> None:
    key = data.draw(any_message(record_type.key, 0))
    encoded_key = encode_key(key)
    assert decode_record(record_types, encoded_key, None) == (key, None)
    for version in range(record_type.value.min_version, record_type.value.max_version + 1):
        value = data.draw(any_message(record_type.value, version))
        encoded_value = encode_value(value, version)
        assert decode_record(record_types, encoded_key, encoded_value) == (key, value)
        assert decode_record(record_types, memoryview(encoded_key), memoryview(encoded_value)) == (key, value)


def test_a_key_begins_with_its_record_type_and_a_value_with_its_version() -> None:
    assert encode_key(OffsetCommitKey(group="g", topic="t", partition=3)) == KEY
    assert encode_value(OffsetCommitValue(offset=7), 3) == VALUE
    assert encode_key(TransactionLogKey(transactional_id="x")) == b"\0\0\0\1x"
    value = TransactionLogValue(producer_id=5, transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[1])])
    assert encode_value(value, 1)[:10] == b"\0\1" + bytes(7) + b"\5"


def test_what_apache_kafka_keeps_is_read_and_written_back() -> None:
    """The records of Apache Kafka 4.3.1 from a classic group, a consumer group that was deleted, and a transaction."""
    seen = set()
    for line in (Path(__file__).with_name("data") / "coordinator_records.jsonl").read_text().splitlines():
        record = json.loads(line)
        key_bytes = bytes.fromhex(record["key"])
        value_bytes = None if record["value"] is None else bytes.fromhex(record["value"])
        key, value = decode_record(OF_TOPIC[record["topic"]], key_bytes, value_bytes)
        assert encode_key(key) == key_bytes
        if value_bytes is None:
            assert value is None
        else:
            assert value is not None
            assert encode_value(value, read_prefix(value_bytes)) == value_bytes
        seen.add(type(key))
    declared = {record_type.key for record_types in OF_TOPIC.values() for record_type in record_types.values()}
    assert declared - seen == {LegacyOffsetCommitKey}


def test_only_version_1_of_an_offset_expires_and_only_version_4_names_the_topic_id() -> None:
    sent = OffsetCommitValue(offset=7, leader_epoch=2, expire_timestamp=9, topic_id=b"i" * 16)
    carried = [decode_record(GROUP_RECORD_TYPES, KEY, encode_value(sent, version))[1] for version in range(5)]
    assert carried == [
        OffsetCommitValue(offset=7),
        OffsetCommitValue(offset=7, expire_timestamp=9),
        OffsetCommitValue(offset=7),
        OffsetCommitValue(offset=7, leader_epoch=2),
        OffsetCommitValue(offset=7, leader_epoch=2, topic_id=b"i" * 16),
    ]


def test_a_member_without_the_classic_protocol_says_so() -> None:
    """Kafka's default is an empty struct, which is what a record without the field means."""
    key = encode_key(ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"))
    for classic in (None, ClassicMemberMetadata(), ClassicMemberMetadata(session_timeout_ms=1)):
        sent = ConsumerGroupMemberMetadataValue(instance_id=None, classic_member_metadata=classic)
        assert decode_record(GROUP_RECORD_TYPES, key, encode_value(sent, 0)) == (
            ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
            sent,
        )
    without = encode_value(ConsumerGroupMemberMetadataValue(), 0)
    assert without.endswith(b"\0")
    assert encode_value(ConsumerGroupMemberMetadataValue(classic_member_metadata=None), 0) == (
        without[:-1] + b"\1" + b"\0\1\0"
    )


def test_bytes_are_read_as_views() -> None:
    classic = ClassicMemberMetadata(supported_protocols=[ClassicProtocol(name="range", metadata=b"subscription")])
    encoded = encode_value(ConsumerGroupMemberMetadataValue(classic_member_metadata=classic), 0)
    key = encode_key(ConsumerGroupMemberMetadataKey())
    _, value = decode_record(GROUP_RECORD_TYPES, key, encoded)
    assert isinstance(value, ConsumerGroupMemberMetadataValue)
    assert value.classic_member_metadata is not None
    metadata = value.classic_member_metadata.supported_protocols[0].metadata
    assert isinstance(metadata, memoryview)
    assert metadata.obj is encoded


def test_what_a_version_must_not_drop_is_refused() -> None:
    with pytest.raises(codec.UnsupportedFieldError, match="next_producer_id"):
        encode_value(TransactionLogValue(next_producer_id=7), 0)
    dropped = GroupMetadataValue(members=[MemberMetadata(group_instance_id="i", rebalance_timeout=5)])
    assert encode_value(dropped, 0) == encode_value(GroupMetadataValue(members=[MemberMetadata()]), 0)


@pytest.mark.parametrize("number", [-1, 9, 10, 17, 32767])
def test_an_unknown_record_type_is_told_apart(number: int) -> None:
    with pytest.raises(UnknownRecordTypeError, match=f"unknown record type {number}") as caught:
        decode_record(GROUP_RECORD_TYPES, number.to_bytes(2, "big", signed=True) + b"later", b"\0\0")
    assert caught.value.record_type == number


@pytest.mark.parametrize(("key", "value"), [(b"", VALUE), (b"\0", VALUE), (KEY[:-1], VALUE), (KEY, b""), (KEY, b"\0")])
def test_what_is_cut_short_is_malformed(key: bytes, value: bytes) -> None:
    with pytest.raises(codec.MalformedError):
        decode_record(GROUP_RECORD_TYPES, key, value)
    for length in range(2, len(VALUE)):
        with pytest.raises(codec.MalformedError):
            decode_record(GROUP_RECORD_TYPES, KEY, VALUE[:length])


@pytest.mark.parametrize("version", [-1, 5])
def test_an_unknown_version_of_a_value_is_refused(version: int) -> None:
    with pytest.raises(codec.UnsupportedVersionError, match=f"OffsetCommitValue has versions 0 to 4, not {version}"):
        decode_record(GROUP_RECORD_TYPES, KEY, version.to_bytes(2, "big", signed=True) + bytes(100))
    with pytest.raises(codec.UnsupportedVersionError):
        encode_value(OffsetCommitValue(), version)
