"""Keys and values of the coordinators' records as bytes."""

from __future__ import annotations

from kwire.protocol import codec
from kwire.protocol.coordinator_records.record_types import RecordTypes
from kwire.protocol.schema import Message
from kwire.protocol.types import Buffer
from kwire.protocol.version_prefixed import INT16, decode_version_prefixed, encode_version_prefixed, read_prefix

_KEY_VERSION = 0
"""The one version every key has; the int16 before a key is the record's type instead."""


class UnknownRecordTypeError(ValueError):
    """A key of a record type that is not declared. Kafka overlooks such a record, and says so in its log."""

    def __init__(self, record_type: int) -> None:
        super().__init__(f"unknown record type {record_type}")
        self.record_type = record_type


def encode_key(key: Message) -> bytes:
    """The record type and the key. EncodeError if a value does not fit its type."""
    return INT16.pack(key.api_key) + codec.encode(key, _KEY_VERSION)


def encode_value(value: Message, version: int) -> bytes:
    """The version and the value.

    UnsupportedFieldError if a field holds what the version cannot carry and must not drop, EncodeError if a value does
    not fit its type, UnsupportedVersionError if there is no such version.
    """
    return encode_version_prefixed(value, version)


def decode_record(record_types: RecordTypes, key: Buffer, value: Buffer | None) -> tuple[Message, Message | None]:
    """The key and value of a record of the topic that has `record_types`; a tombstone has no value.

    Fields of type `bytes` are memoryviews onto `value`. UnknownRecordTypeError, MalformedError if the bytes are not
    such a key or value, UnsupportedVersionError for a version of the value that is not declared.
    """
    number = read_prefix(key)
    record_type = record_types.get(number)
    if record_type is None:
        raise UnknownRecordTypeError(number)
    decoded = codec.decode(record_type.key, _KEY_VERSION, key, INT16.size)
    return decoded, None if value is None else decode_version_prefixed(record_type.value, value)
