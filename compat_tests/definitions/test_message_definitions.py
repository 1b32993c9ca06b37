"""kwire declares its messages as Apache Kafka's own definitions do, which the kafka-clients jar carries as data."""

from __future__ import annotations

import json
import re
import zipfile
from functools import cache
from typing import Any

import pytest

from jvm import apache_kafka, maven
from kwire.protocol.codec.build import all_messages
from kwire.protocol.schema import NEVER, Field, Message, Struct, parse_versions
from kwire.protocol.types import RECORDS, Array, WireType
from kwire.protocol.uuids import ZERO

UNSTABLE = {"InitProducerId": 6}
"""Versions that Apache Kafka defines and does not offer, unless told to enable the unstable ones."""

_INTEGERS = {"int8", "int16", "uint16", "int32", "uint32", "int64"}


@cache
def _definitions() -> dict[str, Any]:
    """Every definition of the jar, by message name."""
    jar = maven.jars(apache_kafka.POM) / f"kafka-clients-{apache_kafka.VERSION}.jar"
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                found[name.rpartition("/")[2].removesuffix(".json")] = json.loads(text)
    return found


@pytest.mark.parametrize("message", [pytest.param(message, id=message.__name__) for message in all_messages()])
def test_a_message_is_declared_as_kafka_defines_it(message: type[Message]) -> None:
    definition = _definitions()[message.__name__]
    assert message.api_key == definition["apiKey"]
    assert message.flexible_from == _versions(definition["flexibleVersions"]).start

    defined = _versions(definition["validVersions"])
    api = message.__name__.removesuffix("Request").removesuffix("Response")
    newest = defined[-1] - 1 if api in UNSTABLE else defined[-1]
    assert (message.min_version, message.max_version) == (defined[0], newest)

    common = {item["name"]: item["fields"] for item in definition.get("commonStructs", [])}
    for version in range(message.min_version, message.max_version + 1):
        flexible = version >= message.flexible_from
        assert _declared(message, version, flexible) == _defined(definition["fields"], common, version, flexible)


def test_an_unstable_version_is_marked_so() -> None:
    for api, version in UNSTABLE.items():
        definition = _definitions()[f"{api}Request"]
        assert definition["latestVersionUnstable"] is True
        assert _versions(definition["validVersions"])[-1] == version


def _versions(text: str) -> range:
    return range(NEVER, NEVER) if text == "none" else parse_versions(text)


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


def _defined(fields: list[Any], common: dict[str, Any], version: int, flexible: bool) -> list[Any]:
    """The same from Kafka's definition."""
    rows = []
    for field in fields:
        if version not in _versions(field["versions"]):
            continue
        base = field["type"].removeprefix("[]")
        is_array = field["type"].startswith("[]")
        inner = field.get("fields") or common.get(base)
        kind = _defined(inner, common, version, flexible) if inner else base
        rows.append(
            (
                _snake_case(field["name"]),
                ["array", kind] if is_array else kind,
                version in _versions(field.get("nullableVersions", "none")),
                _defined_default(field.get("default"), base, is_array or inner is not None),
                field.get("tag") if flexible else None,
                field.get("ignorable", False) in (True, "true"),
            )
        )
    return rows


def _defined_default(text: Any, base: str, is_composite: bool) -> Any:
    if text == "null" or base == RECORDS.name:
        return None
    if is_composite:
        return "empty"
    if base in _INTEGERS:
        return int(str(text or 0), 0)
    if base == "bool":
        return str(text).lower() == "true"
    return {"string": text or "", "bytes": b"", "uuid": ZERO, "float64": 0.0}[base]


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
