"""The codecs of the internal topics' records, for the runtime."""

from __future__ import annotations

import logging

from kwire.coordinator.runtime.outcome import CoordinatorRecord
from kwire.protocol.coordinator_records.record_types import RecordTypes
from kwire.protocol.coordinator_records.serde import UnknownRecordTypeError, decode_record, encode_key, encode_value
from kwire.protocol.version_prefixed import read_prefix

logger = logging.getLogger(__name__)


class TopicRecords:
    """The records of one internal topic, as bytes and decoded (a `RecordCodec`)."""

    def __init__(self, types: RecordTypes) -> None:
        self._types = types
        self._unknown: set[int] = set()

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        value = None if record.value is None else encode_value(record.value, record.version)
        return encode_key(record.key), value

    def decode(self, key: bytes, value: bytes | None) -> CoordinatorRecord | None:
        """None for a type of record that is not known: a newer broker may have written it, and Kafka skips it too."""
        try:
            decoded_key, decoded_value = decode_record(self._types, key, value)
        except UnknownRecordTypeError as error:
            if error.record_type not in self._unknown:
                self._unknown.add(error.record_type)
                logger.warning("records of an unknown type are skipped type=%d", error.record_type)
            return None
        return CoordinatorRecord(decoded_key, decoded_value, 0 if value is None else read_prefix(value))
