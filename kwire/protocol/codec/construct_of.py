"""From a declared message and a version, the construct Struct that says how it lies on the wire.

This is the definition: the fast code is written from it (`generate`), tests hold that code to it (`reference`), and
printed it explains a frame.
"""

from __future__ import annotations

from functools import lru_cache

import construct

from kwire.protocol import types
from kwire.protocol.codec.elements import (
    COMPACT_LENGTH,
    Blob,
    MessageStruct,
    OrNull,
    RecordBatches,
    Repeated,
    TaggedFields,
    Text,
)
from kwire.protocol.codec.errors import UnsupportedVersionError
from kwire.protocol.schema import Message, Struct

FIXED = {
    types.BOOL: construct.Flag,
    types.INT8: construct.Int8sb,
    types.INT16: construct.Int16sb,
    types.UINT16: construct.Int16ub,
    types.INT32: construct.Int32sb,
    types.UINT32: construct.Int32ub,
    types.INT64: construct.Int64sb,
    types.FLOAT64: construct.Float64b,
    types.UUID: construct.Bytes(16),
}


@lru_cache(maxsize=64)
def construct_of(message: type[Message], version: int) -> MessageStruct:
    """How `message` lies on the wire in `version`. UnsupportedVersionError if it has no such version."""
    if not message.min_version <= version <= message.max_version:
        raise UnsupportedVersionError(
            f"{message.__name__} has versions {message.min_version} to {message.max_version}, not {version}"
        )
    return _struct(message, version, version >= message.flexible_from)


def _struct(declared: type[Struct], version: int, flexible: bool) -> MessageStruct:
    members, tagged = [], {}
    for field in declared.declared_fields:
        if version not in field.versions:
            continue
        element = _element(field.kind, version, flexible, version in field.nullable, field.tag is not None)
        if field.tag is None:
            members.append(field.name / element)
        elif flexible:
            tagged[field.tag] = (field.name, element)
    if flexible:
        members.append("tagged_fields" / TaggedFields(tagged))
    return MessageStruct(declared, version, members)


def _element(
    kind: types.WireType | types.Array | type[Struct],
    version: int,
    flexible: bool,
    nullable: bool,
    tagged: bool = False,
) -> construct.Construct:
    if isinstance(kind, types.Array):
        count = COMPACT_LENGTH if flexible else construct.Int32sb
        return Repeated(count, nullable, _element(kind.element, version, flexible, nullable=False), kind.lasting)
    if isinstance(kind, type):
        struct = _struct(kind, version, flexible)
        return OrNull(struct, tagged) if nullable else struct
    if kind is types.STRING:
        return Text(COMPACT_LENGTH if flexible else construct.Int16sb, nullable)
    if kind is types.BYTES:
        return Blob(COMPACT_LENGTH if flexible else construct.Int32sb, nullable)
    if kind is types.RECORDS:
        return RecordBatches(COMPACT_LENGTH if flexible else construct.Int32sb, nullable)
    return FIXED[kind]
