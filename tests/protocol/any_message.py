"""Hypothesis strategies for any message in any version, with values at the edges of types and lengths of varints."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

from hypothesis import strategies as st

from kwire.protocol import types
from kwire.protocol.schema import Field, Message, Struct


def _integers(format: str) -> st.SearchStrategy[int]:
    bits = 8 * struct.calcsize(f">{format}")
    low, high = (0, 2**bits - 1) if format.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return st.sampled_from([0, -1 if low else 1, low, high]) | st.integers(low, high)


_sizes = st.sampled_from([0, 1, 126, 127, 128, 16382, 16383, 16384])
_texts = st.text(max_size=6) | _sizes.map("x".__mul__) | st.sampled_from(["é" * 64, "x" * 0x7FFF, "\0", "\U0001f426"])
_blobs = st.binary(max_size=6) | _sizes.map(b"b".__mul__)

_VALUES: dict[types.WireType, st.SearchStrategy[Any]] = {
    types.BOOL: st.booleans(),
    types.FLOAT64: st.floats(allow_nan=False),
    types.UUID: st.binary(min_size=16, max_size=16),
    types.STRING: _texts,
    types.BYTES: _blobs,
    types.RECORDS: _blobs,
} | {
    kind: _integers(kind.format)
    for kind in (types.INT8, types.INT16, types.UINT16, types.INT32, types.UINT32, types.INT64)
}

_tags = st.none() | st.dictionaries(st.sampled_from([100, 127, 128, 70000, 2**32 - 1]), _blobs, min_size=1, max_size=2)


@cache
def any_message(message: type[Message], version: int, unknown_tags: bool = True) -> st.SearchStrategy[Any]:
    """Messages that the version can carry; those of flexible versions may have tagged fields that nobody knows."""
    return _structs(
        message, version, unknown_tags and version >= message.flexible_from, version >= message.flexible_from
    )


def _structs(declared: type[Struct], version: int, unknown_tags: bool, flexible: bool) -> st.SearchStrategy[Any]:
    fields = {
        field.name: _field(field, version, unknown_tags, flexible)
        for field in declared.declared_fields
        if version in field.versions and (field.tag is None or flexible)
    }
    return st.builds(declared, **fields, **({"unknown_tags": _tags} if unknown_tags else {}))


def _field(field: Field, version: int, unknown_tags: bool, flexible: bool) -> st.SearchStrategy[Any]:
    if isinstance(field.kind, types.Array):
        values = _lists(field.kind.element, version, unknown_tags, flexible)
    else:
        values = _value(field.kind, version, unknown_tags, flexible)
    if version in field.nullable:
        values = st.none() | values
    if field.tag is not None:
        values = st.builds(field.new_default) | values
    return values


def _lists(
    element: types.WireType | type[Struct], version: int, unknown_tags: bool, flexible: bool
) -> st.SearchStrategy[Any]:
    values = _value(element, version, unknown_tags, flexible)
    lists = st.lists(values, max_size=2)
    if isinstance(element, types.WireType) and element.size:
        lists |= st.builds(lambda value, size: [value] * size, values, st.sampled_from([126, 127, 128, 200]))
    return lists


def _value(
    kind: types.WireType | type[Struct], version: int, unknown_tags: bool, flexible: bool
) -> st.SearchStrategy[Any]:
    return _VALUES[kind] if isinstance(kind, types.WireType) else _structs(kind, version, unknown_tags, flexible)
