"""The codec writes what kio writes, an independent implementation generated from Kafka's own definitions.

kio gives some fields richer Python types (error codes, time spans, points in time), which hold fewer values than the
wire does; `_same` first moves a drawn value into their range.
"""

from __future__ import annotations

import io
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, get_args, get_type_hints
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

from kwire.protocol import codec
from kwire.protocol.schema import Message, Struct
from kwire.protocol.uuids import ZERO
from tests.protocol.any_message import any_message

_ERROR_CODES = [code.value for code in ErrorCode]
_LONGEST_TIME_MS = 2**40


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_codec_writes_what_kio_writes(api_message: type[Message], version: int, data: st.DataObject) -> None:
    ours = data.draw(any_message(api_message, version, unknown_tags=False))
    api = api_message.__module__.rpartition(".")[2]
    kind = "request" if api_message.__name__.endswith("Request") else "response"
    theirs_type = getattr(import_module(f"kio.schema.{api}.v{version}.{kind}"), api_message.__name__)
    assert (api_message.api_key, version) == (theirs_type.__api_key__, theirs_type.__version__)

    theirs = _twin(ours, theirs_type, version, version >= api_message.flexible_from)
    buffer = io.BytesIO()
    entity_writer(theirs_type)(buffer, theirs)
    assert codec.encode(ours, version) == buffer.getvalue()


def _twin(ours: Struct, theirs_type: Any, version: int, flexible: bool) -> Any:
    """The kio entity with the values of `ours`, field by field in the order of declaration."""
    carried = [field for field in ours.declared_fields if version in field.versions and (field.tag is None or flexible)]
    theirs_fields = fields(theirs_type)
    assert [field.tag for field in carried] == [field.metadata.get("tag") for field in theirs_fields]
    hints = get_type_hints(theirs_type)
    values = {}
    for field, their_field in zip(carried, theirs_fields, strict=True):
        value, values[their_field.name] = _same(
            getattr(ours, field.name),
            their_field.metadata.get("kafka_type"),
            hints[their_field.name],
            version,
            flexible,
        )
        setattr(ours, field.name, value)
    return theirs_type(**values)


def _same(value: Any, kafka_type: str | None, hint: Any, version: int, flexible: bool) -> tuple[Any, Any]:
    """A value that both sides can hold, near `value`: ours and theirs."""
    if isinstance(value, list):
        element = next(arg for arg in (hint, *get_args(hint)) if getattr(arg, "__origin__", None) is tuple)
        pairs = [_same(item, kafka_type, get_args(element)[0], version, flexible) for item in value]
        return [ours for ours, _ in pairs], tuple(theirs for _, theirs in pairs)
    if isinstance(value, Struct):
        theirs_type = next(arg for arg in (hint, *get_args(hint)) if hasattr(arg, "__type__"))
        return value, _twin(value, theirs_type, version, flexible)
    if value is None:
        return None, None
    match kafka_type:
        case "uuid":
            return value, None if value == ZERO else UUID(bytes=bytes(value))
        case "error_code":
            code = _ERROR_CODES[value % len(_ERROR_CODES)]
            return code, ErrorCode(code)
        case "timedelta_i32":
            return value, timedelta(milliseconds=value)
        case "timedelta_i64":
            value %= _LONGEST_TIME_MS
            return value, timedelta(milliseconds=value)
        case "datetime_i64":
            value = value % _LONGEST_TIME_MS // 1000 * 1000
            if type(None) in get_args(hint) and value == 0:
                return -1, None
            return value, datetime.fromtimestamp(value / 1000, UTC)
    return value, value
