"""kwire writes each message, in every version, byte for byte as Apache Kafka's own classes do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compat_tests.definitions.definitions import definitions
from compat_tests.definitions.message_writer import MessageWriter
from kwire.protocol.codec.build import all_messages
from kwire.protocol.coordinator_records.record_types import GROUP_RECORD_TYPES, TRANSACTION_RECORD_TYPES
from kwire.protocol.coordinator_records.serde import encode_key
from kwire.protocol.records.control import build_end_txn_marker
from kwire.protocol.records.record import iter_records
from kwire.protocol.schema import Message
from kwire.protocol.version_prefixed import encode_version_prefixed
from tests.protocol.any_message import any_message

pytestmark = pytest.mark.xdist_group("definitions")


@pytest.fixture(scope="module")
def kafka() -> Iterator[MessageWriter]:
    writer = MessageWriter()
    yield writer
    writer.close()


@pytest.mark.parametrize("message", [pytest.param(message, id=message.__name__) for message in all_messages()])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_message_is_written_as_kafka_writes_it(
    message: type[Message], kafka: MessageWriter, data: st.DataObject
) -> None:
    for version in range(message.min_version, message.max_version + 1):
        sent = data.draw(any_message(message, version, unknown_tags=False))
        assert encode_version_prefixed(sent, version) == kafka.write(sent, version)


@pytest.mark.parametrize("message", [pytest.param(message, id=message.__name__) for message in all_messages()])
def test_a_message_of_defaults_is_written_as_kafka_writes_it(message: type[Message], kafka: MessageWriter) -> None:
    java_class = definitions()[message.__name__].java_class
    for version in range(message.min_version, message.max_version + 1):
        assert encode_version_prefixed(message(), version) == kafka.write_fields(java_class, version, None)


@pytest.mark.parametrize(
    "key_type",
    [
        pytest.param(record_type.key, id=record_type.key.__name__)
        for record_types in (GROUP_RECORD_TYPES, TRANSACTION_RECORD_TYPES)
        for record_type in record_types.values()
    ],
)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_key_is_written_as_kafka_writes_it(
    key_type: type[Message], kafka: MessageWriter, data: st.DataObject
) -> None:
    key = data.draw(any_message(key_type, 0))
    assert encode_key(key) == kafka.write_key(key)


@pytest.mark.parametrize(("commit", "kind"), [(False, 0), (True, 1)])
def test_a_transaction_marker_is_written_as_kafka_writes_it(kafka: MessageWriter, commit: bool, kind: int) -> None:
    batch = build_end_txn_marker(5, 3, commit=commit, coordinator_epoch=9, timestamp=1)
    (record,) = iter_records(batch)
    key, value = definitions()["ControlRecordTypeSchema"], definitions()["EndTxnMarker"]
    assert record.key == kafka.write_fields(key.java_class, 0, {"type": kind})
    assert record.value == kafka.write_fields(value.java_class, 0, {"coordinatorEpoch": 9})
