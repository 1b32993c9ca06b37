"""Lines of Python being written, and what both writers need: indented blocks, fresh names, packed runs, defaults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import calcsize

import construct

from kwire.protocol.codec.construct_of import FIXED
from kwire.protocol.codec.elements import Counted, MessageStruct, OrNull, TaggedFields
from kwire.protocol.schema import Field, Struct
from kwire.protocol.types import Array
from kwire.protocol.uuids import ZERO

FORMATS = {element: kind.format for kind, element in FIXED.items()}
"""The `struct` character of each construct element of fixed size."""


def format_of(element: construct.Construct) -> str | None:
    """The `struct` character of an element of fixed size; None for any other."""
    return FORMATS.get(element)


def packed_name(verb: str, format: str) -> str:
    """The name of the precompiled `pack` or `unpack_from` for a run, like `pack_hiq`."""
    return f"{verb}_{format.replace('16s', 'U').replace('?', 'F')}"


def least_size(element: construct.Construct) -> int:
    """The fewest bytes an element can take, which bounds how many of them fit into what is left of a frame."""
    format = format_of(element)
    if format is not None:
        return calcsize(f">{format}")
    if isinstance(element, Counted):
        return 1 if element.compact else calcsize(f">{FORMATS[element.length]}")
    if isinstance(element, OrNull | TaggedFields):
        return 1
    assert isinstance(element, MessageStruct)
    return sum(least_size(member.subcon) for member in element.subcons)


def absent_fields(definition: MessageStruct) -> list[Field]:
    """The declared fields that the version does not carry, tagged ones in versions without tags included."""
    carried = {member.name for member in definition.subcons} | {name for name, _ in known_tags(definition).values()}
    return [field for field in definition.declared.declared_fields if field.name not in carried]


def known_tags(definition: MessageStruct) -> dict[int, tuple[str, construct.Construct]]:
    """The declared tagged fields of the version, by tag."""
    for member in definition.subcons:
        if isinstance(member.subcon, TaggedFields):
            return member.subcon.known
    return {}


def literal(value: object) -> str:
    """A default as it is written in the code."""
    return "ZERO" if value == ZERO else repr(value)


def is_default(field: Field, value: str) -> str:
    """An expression that says whether `value`, itself an expression, is the declared default of `field`."""
    if field.default is None:
        return f"{value} is None"
    if not field.has_mutable_default:
        return f"{value} == {literal(field.default)}"
    if isinstance(field.kind, Array):
        return f"{value} == []"
    assert isinstance(field.kind, type)
    parts = [f"{value} is not None"] if field.nullable_text else []
    parts += [is_default(inner, f"{value}.{inner.name}") for inner in field.kind.declared_fields]
    return " and ".join([*parts, f"{value}.unknown_tags is None"])


class Lines:
    """The body of one function while it is written."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.formats: set[tuple[str, str]] = set()
        self.classes: set[type[Struct]] = set()
        self._depth = 1
        self._names = 0

    def add(self, line: str) -> None:
        """One line, at the current depth."""
        self.text.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is added inside stands one level deeper, under `head`."""
        self.add(head)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, stem: str) -> str:
        """A name nobody else in this function has."""
        self._names += 1
        return f"{stem}{self._names}"

    def packed(self, verb: str, format: str) -> str:
        """The name of a precompiled `pack` or `unpack_from`, which the module will define."""
        self.formats.add((verb, format))
        return packed_name(verb, format)

    def class_name(self, declared: type[Struct]) -> str:
        """The name of a struct's class, which the module will import."""
        self.classes.add(declared)
        return declared.__name__
