"""kwire declares its messages as Apache Kafka's own definitions do."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.definitions.definitions import FieldDefinition, definitions
from kwire.protocol.api_keys import APIS
from kwire.protocol.codec.build import all_messages
from kwire.protocol.coordinator_records.record_types import GROUP_RECORD_TYPES, TRANSACTION_RECORD_TYPES
from kwire.protocol.metadata_records.record_types import METADATA_RECORD_TYPES, PASSING_RECORD_TYPES
from kwire.protocol.schema import NEVER, Field, Message, Struct
from kwire.protocol.types import RECORDS, Array, WireType
from kwire.protocol.uuids import ZERO

_INTEGERS = {"int8", "int16", "uint16", "int32", "uint32", "int64"}


@pytest.mark.parametrize("message", [pytest.param(message, id=message.__name__) for message in all_messages()])
def test_a_message_is_declared_as_kafka_defines_it(message: type[Message]) -> None:
    definition = definitions()[message.__name__]
    assert message.api_key == definition.api_key
    assert message.flexible_from == (definition.flexible.start if definition.flexible else NEVER)

    newest = definition.versions[-1] - 1 if _has_unstable_version(message) else definition.versions[-1]
    assert (message.min_version, message.max_version) == (definition.versions[0], newest)

    for version in range(message.min_version, message.max_version + 1):
        flexible = version in definition.flexible
        assert _declared(message, version, flexible) == _defined(definition.fields, version)


def test_every_api_of_a_broker_is_declared() -> None:
    served = {
        definition.api_key
        for definition in definitions().values()
        if definition.kind == "request" and "broker" in definition.listeners
    }
    assert served <= set(APIS)
    assert len(served) == 77


def test_the_records_of_classic_and_consumer_groups_and_of_transactions_are_declared() -> None:
    keys = [definition for definition in definitions().values() if definition.kind == "coordinator-key"]
    groups = [key for key in keys if not key.name.startswith(("ShareGroup", "StreamsGroup", "Transaction"))]
    assert {key.api_key: key.name for key in groups} == {
        number: record_type.key.__name__ for number, record_type in GROUP_RECORD_TYPES.items()
    }
    transactions = [key for key in keys if key.name.startswith("Transaction")]
    assert {key.api_key: key.name for key in transactions} == {
        number: record_type.key.__name__ for number, record_type in TRANSACTION_RECORD_TYPES.items()
    }


def test_every_type_of_a_metadata_record_is_declared_or_named() -> None:
    kafkas = {
        definition.api_key: definition.name
        for definition in definitions().values()
        if definition.kind == "metadata" and not definition.name.startswith("Remote")
    }
    declared = {number: record_type.__name__ for number, record_type in METADATA_RECORD_TYPES.items()}
    assert kafkas == declared | PASSING_RECORD_TYPES


def _has_unstable_version(message: type[Message]) -> bool:
    """Whether Kafka defines a version more than it offers, unless told to enable unstable ones."""
    request = definitions().get(message.__name__.replace("Response", "Request"))
    return request is not None and request.unstable


def _declared(struct: type[Struct], version: int, flexible: bool) -> list[Any]:
    """What kwire declares for a version: a row a field, structs in the field's place."""
    return [
        (
            field.name,
            _kind(field.kind, version, flexible),
            version in field.nullable,
            _default(field),
            field.tag if flexible else None,
            field.ignorable,
        )
        for field in struct.declared_fields
        if version in field.versions
    ]


def _kind(kind: WireType | Array | type[Struct], version: int, flexible: bool) -> Any:
    if isinstance(kind, Array):
        return ["array", _kind(kind.element, version, flexible)]
    return kind.name if isinstance(kind, WireType) else _declared(kind, version, flexible)


def _default(field: Field) -> Any:
    return "empty" if field.has_mutable_default else field.default


def _defined(fields: tuple[FieldDefinition, ...], version: int) -> list[Any]:
    """The same from Kafka's definition."""
    rows = []
    for field in fields:
        if version not in field.versions:
            continue
        kind = field.type if field.fields is None else _defined(field.fields, version)
        rows.append(
            (
                field.snake_case,
                ["array", kind] if field.is_array else kind,
                version in field.nullable,
                _defined_default(field),
                field.tag if version in field.tagged else None,
                field.ignorable,
            )
        )
    return rows


def _defined_default(field: FieldDefinition) -> Any:
    """The text "null" is null; JSON's null is no default at all, and so Kafka takes the type's own."""
    if field.default == "null" or field.type == RECORDS.name:
        return None
    if field.is_array or field.fields is not None:
        assert not field.default
        return "empty"
    if field.type in _INTEGERS:
        return int(field.default or "0", 0)
    if field.type == "bool":
        return field.default == "true"
    if field.type == "string":
        return field.default or ""
    assert not field.default
    return {"bytes": b"", "uuid": ZERO, "float64": 0.0}[field.type]
