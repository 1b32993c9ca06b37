"""Records of the topics that brokers write for themselves, as values to print: coordinators', controllers', tiers'."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kwire.protocol.codec.errors import MalformedError, UnsupportedVersionError

if TYPE_CHECKING:
    from kwire.protocol.coordinator_records.record_types import RecordTypes
    from kwire.protocol.records.record import Record
    from kwire.protocol.schema import Message, Struct

Decode = Callable[["Record"], dict[str, Any]]
"""The key and value of a record; as they are where they can't be decoded."""


def decoder_of(topic: str) -> Decode | None:
    """None for a topic whose records are their producers' affair."""
    if topic == "__cluster_metadata":
        from kwire.protocol.metadata_records import serde as of_controllers

        return _framed(of_controllers.decode_record)
    if topic == "__remote_log_metadata":
        from kwire.protocol.remote_log_records import serde as of_remote_storage

        return _framed(of_remote_storage.decode_record)
    if topic == "__consumer_offsets":
        from kwire.protocol.coordinator_records.record_types import GROUP_RECORD_TYPES

        return _of_coordinators(GROUP_RECORD_TYPES)
    if topic == "__transaction_state":
        from kwire.protocol.coordinator_records.record_types import TRANSACTION_RECORD_TYPES

        return _of_coordinators(TRANSACTION_RECORD_TYPES)
    return None


def _of_coordinators(record_types: RecordTypes) -> Decode:
    from kwire.protocol.coordinator_records.serde import UnknownRecordTypeError, decode_record

    def decode(record: Record) -> dict[str, Any]:
        try:
            key, value = decode_record(record_types, record.key or b"", record.value)
        except (MalformedError, UnsupportedVersionError, UnknownRecordTypeError) as error:
            return {"undecoded": str(error), "key": record.key, "value": record.value}
        return {"key": _message(key, "Key"), "value": None if value is None else _message(value, "Value")}

    return decode


def _framed(decode_value: Callable[[bytes], Message | None]) -> Decode:
    """Of records without keys."""
    from kwire.protocol.framed import UnknownRecord

    def decode(record: Record) -> dict[str, Any]:
        try:
            message = decode_value(record.value or b"")
        except (MalformedError, UnsupportedVersionError, UnknownRecord) as error:
            return {"undecoded": str(error), "key": record.key, "value": record.value}
        return {"value": record.value if message is None else _message(message, "Record")}

    return decode


def _message(message: Message, suffix: str) -> dict[str, Any]:
    return {"type": type(message).__name__.removesuffix(suffix), **_fields(message)}


def _fields(struct: Struct) -> dict[str, Any]:
    return {field.name: _value(getattr(struct, field.name), str(field.kind)) for field in struct.declared_fields}


def _value(value: Any, kind: str) -> Any:
    if isinstance(value, list):
        return [_value(item, kind.removeprefix("[]")) for item in value]
    if hasattr(value, "declared_fields"):
        return _fields(value)
    if kind == "uuid":
        from kwire.protocol import uuids

        return uuids.to_text(value)
    return bytes(value) if isinstance(value, memoryview) else value
