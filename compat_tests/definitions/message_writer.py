"""Kafka's own classes, writing messages for the tests: one JVM that takes a message a line."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from compat_tests.definitions.definitions import FieldDefinition, definitions
from jvm import apache_kafka, maven
from kwire.protocol import uuids
from kwire.protocol.schema import Message, Struct

_PROGRAM = Path(__file__).with_name("MessageWriter.java")


class MessageWriter:
    """`write` gives Kafka's bytes of a message. The JVM starts with the instance and ends with `close`."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        command = [maven.java_program("java"), "-Xmx256m", *apache_kafka.SHORT_LIVED, *apache_kafka.QUIET]
        command += ["-cp", apache_kafka.class_path(), str(_PROGRAM)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )

    def write(self, message: Message, version: int) -> bytes:
        """An int16 of the version, and the message. AssertionError, with what Java said, if Kafka refuses it."""
        definition = definitions()[type(message).__name__]
        return self.write_fields(definition.java_class, version, _fields(message, definition.fields, version))

    def write_key(self, key: Message) -> bytes:
        """An int16 of the record type, and the key of a coordinator's record."""
        definition = definitions()[type(key).__name__]
        return self.write_fields(definition.java_class, None, _fields(key, definition.fields, 0))

    def write_fields(self, java_class: str, version: int | None, fields: dict[str, Any] | None) -> bytes:
        """The same for a message given as Kafka's JSON, or for one that Kafka has filled with its own defaults.

        A version of None says that it is a key.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"class": java_class, "version": version, "fields": fields}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._errors.seek(0)
            raise AssertionError(f"{java_class} version {version}: {self._errors.read().decode(errors='replace')}")
        return bytes.fromhex(answer)

    def close(self) -> None:
        """Ends the JVM."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def _fields(struct: Struct, fields: tuple[FieldDefinition, ...], version: int) -> dict[str, Any]:
    """A struct in the JSON of Kafka's converters."""
    return {
        field.camel_case: _value(getattr(struct, field.snake_case), field, version)
        for field in fields
        if version in field.versions
    }


def _value(value: Any, field: FieldDefinition, version: int) -> Any:
    if isinstance(value, list):
        return [_value(item, field, version) for item in value]
    if isinstance(value, Struct):
        assert field.fields is not None
        return _fields(value, field.fields, version)
    if isinstance(value, bytes):
        return uuids.to_text(value) if field.type == "uuid" else base64.b64encode(value).decode()
    return value
