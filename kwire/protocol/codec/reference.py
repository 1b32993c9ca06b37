"""Decoding and encoding by construct itself: slow, plain, and what the generated code must agree with."""

from __future__ import annotations

from typing import Any, TypeVar

from construct import ConstructError

from kwire.protocol.codec.construct_of import construct_of
from kwire.protocol.codec.elements import MessageStruct, OrNull, Repeated, TaggedFields
from kwire.protocol.codec.errors import EncodeError, MalformedError, UnsupportedFieldError
from kwire.protocol.schema import Message, Struct

M = TypeVar("M", bound=Message)


def decode(message: type[M], version: int, data: bytes | memoryview) -> M:
    """The message at the start of `data`. MalformedError if there is none."""
    definition = construct_of(message, version)
    try:
        values = definition.parse(data)
    except ConstructError as error:
        raise MalformedError(f"{message.__name__} version {version}: {error}") from error
    return _from_values(definition, values)


def encode(message: Message, version: int) -> bytes:
    """The bytes of `message`. EncodeError if a value cannot be written."""
    definition = construct_of(type(message), version)
    try:
        return bytes(definition.build(_to_values(definition, message)))
    except ConstructError as error:
        raise EncodeError(f"{type(message).__name__} version {version}: {error}") from error


def _from_values(definition: Any, values: Any) -> Any:
    """Structs for the containers that construct parses; any other value as it is."""
    if values is None or not isinstance(definition, MessageStruct | OrNull | Repeated):
        return values
    if isinstance(definition, OrNull):
        return _from_values(definition.subcon, values)
    if isinstance(definition, Repeated):
        return [_from_values(definition.element, value) for value in values]
    found: dict[str, Any] = {}
    for member in definition.subcons:
        value = values[member.name]
        if isinstance(member.subcon, TaggedFields):
            elements = dict(member.subcon.known.values())
            found |= {name: _from_values(elements.get(name), value[name]) for name in value}
        else:
            found[member.name] = _from_values(member.subcon, value)
    return definition.declared(**found)


def _to_values(definition: Any, value: Any) -> Any:
    """The dicts construct builds from, the other way round."""
    if value is None or not isinstance(definition, MessageStruct | OrNull | Repeated):
        return value
    if isinstance(definition, OrNull):
        return _to_values(definition.subcon, value)
    if isinstance(definition, Repeated):
        return [_to_values(definition.element, item) for item in value]
    _refuse_lost_values(definition, value)
    values: dict[str, Any] = {}
    for member in definition.subcons:
        if isinstance(member.subcon, TaggedFields):
            values[member.name] = tagged = {"unknown_tags": value.unknown_tags}
            defaults = {field.name: field.new_default() for field in definition.declared.declared_fields}
            for name, element in member.subcon.known.values():
                item = getattr(value, name)
                if item != defaults[name]:
                    tagged[name] = _to_values(element, item)
        else:
            values[member.name] = _to_values(member.subcon, getattr(value, member.name))
    return values


def _refuse_lost_values(definition: MessageStruct, value: Struct) -> None:
    """UnsupportedFieldError if the version lacks a field that holds a value and may not be dropped."""
    present = set()
    for member in definition.subcons:
        if isinstance(member.subcon, TaggedFields):
            present |= {"unknown_tags", *(name for name, _ in member.subcon.known.values())}
        else:
            present.add(member.name)
    lost = [
        field.name
        for field in definition.declared.declared_fields
        if field.name not in present and not field.ignorable and getattr(value, field.name) != field.new_default()
    ]
    if "unknown_tags" not in present and value.unknown_tags:
        lost.append("unknown_tags")
    if lost:
        raise UnsupportedFieldError(
            f"{', '.join(lost)} of {type(value).__name__} has a value, and version {definition.version} cannot carry it"
        )
