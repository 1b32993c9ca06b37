"""Apache Kafka's own definitions of its messages, which the jars carry as data, and where its classes for them are."""

from __future__ import annotations

import json
import re
import zipfile
from functools import cache
from typing import Any, NamedTuple

from jvm import apache_kafka, maven
from kwire.protocol.schema import parse_versions

_PACKAGES = {
    "kafka-clients": "org.apache.kafka.common.message",
    "kafka-group-coordinator": "org.apache.kafka.coordinator.group.generated",
    "kafka-transaction-coordinator": "org.apache.kafka.coordinator.transaction.generated",
    "kafka-metadata": "org.apache.kafka.common.metadata",
    "kafka-storage": "org.apache.kafka.server.log.remote.metadata.storage.generated",
}
"""The jars with definitions of what kwire declares, and the package of the classes generated from them."""


class FieldDefinition(NamedTuple):
    """One field of a definition. `fields` are those of the struct it holds or has a list of, None for plain types."""

    name: str
    type: str
    is_array: bool
    versions: range
    nullable: range
    tagged: range
    tag: int | None
    default: str | None
    ignorable: bool
    fields: tuple[FieldDefinition, ...] | None

    @property
    def snake_case(self) -> str:
        """As a Python attribute."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.name).lower()

    @property
    def camel_case(self) -> str:
        """As Kafka writes it in JSON."""
        return self.name[0].lower() + self.name[1:]


class MessageDefinition(NamedTuple):
    """A message; `java_class` is the class Kafka has for it."""

    name: str
    java_class: str
    kind: str
    api_key: int
    versions: range
    flexible: range
    unstable: bool
    listeners: tuple[str, ...]
    fields: tuple[FieldDefinition, ...]


@cache
def definitions() -> dict[str, MessageDefinition]:
    """Every definition in the jars that has versions left, by message name."""
    found = {}
    for jar, package in _PACKAGES.items():
        with zipfile.ZipFile(maven.jars(apache_kafka.POM) / f"{jar}-{apache_kafka.VERSION}.jar") as archive:
            for path in archive.namelist():
                if path.startswith(("common/message/", "common/metadata/", "message/")) and path.endswith(".json"):
                    text = re.sub(r"^\s*//.*$", "", archive.read(path).decode(), flags=re.MULTILINE)
                    read = json.loads(text)
                    if read["validVersions"] != "none":
                        found[read["name"]] = _message(read, package)
    return found


def _message(read: dict[str, Any], package: str) -> MessageDefinition:
    structs = {item["name"]: item["fields"] for item in read.get("commonStructs", [])}
    return MessageDefinition(
        name=read["name"],
        java_class=f"{package}.{read['name']}{'Data' if read['type'] in ('request', 'response') else ''}",
        kind=read["type"],
        api_key=read.get("apiKey", -1),
        versions=_versions(read["validVersions"]),
        flexible=_versions(read["flexibleVersions"]),
        unstable=read.get("latestVersionUnstable", False),
        listeners=tuple(read.get("listeners", ())),
        fields=_fields(read["fields"], structs),
    )


def _fields(read: list[dict[str, Any]], structs: dict[str, Any]) -> tuple[FieldDefinition, ...]:
    return tuple([_field(item, structs) for item in read])


def _field(read: dict[str, Any], structs: dict[str, Any]) -> FieldDefinition:
    base = read["type"].removeprefix("[]")
    inner = read.get("fields") or structs.get(base)
    tagged = read.get("taggedVersions", "none")
    default = read.get("default")
    return FieldDefinition(
        name=read["name"],
        type=base,
        is_array=read["type"].startswith("[]"),
        versions=_versions(read.get("versions", tagged)),
        nullable=_versions(read.get("nullableVersions", "none")),
        tagged=_versions(tagged),
        tag=read.get("tag"),
        default=None if default is None else str(default).lower() if isinstance(default, bool) else str(default),
        ignorable=read.get("ignorable", False) in (True, "true"),
        fields=_fields(inner, structs) if inner else None,
    )


def _versions(text: str) -> range:
    return range(0) if text == "none" else parse_versions(text)
