"""What a value must be: JSON that a JSON Schema admits, or one Avro datum of a schema. Nothing here needs Spark."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import fastavro
import jsonschema
import referencing
import referencing.exceptions
import referencing.jsonschema
from jsonschema_specifications import REGISTRY as DRAFTS

from spark_jobs.faults import Fault

FRAME = 5
"""Bytes that clients of a schema registry put before a value: 0, and the id of the schema."""
MOST_ERRORS = 10
"""How many of a value's errors are told."""
LONGEST = 1000
"""Characters of what is told: an error may quote all of a value."""

Check = Callable[[bytes | None], tuple[str, str] | None]
"""Gives nothing for a good value, else a kind (the Python class of the error) and a sentence."""


class Bad(ValueError):
    """A value that no parser was asked about."""


@dataclass(frozen=True)
class Schema:
    """What is sent to the workers; `check` makes of it what costs time to make, once each."""

    language: str
    """json or avro."""
    contents: Any
    formats: bool = False
    """For JSON: whether what `format` says is demanded."""
    framed: bool = False
    tombstones: bool = False
    """Whether a record without a value is good."""

    def check(self) -> Check:
        """The function that tells a good value from a bad one."""
        parse = _avro(self.contents) if self.language == "avro" else _json(self.contents, formats=self.formats)

        def check(value: bytes | None) -> tuple[str, str] | None:
            if value is None:
                return None if self.tombstones else (_kind(Bad()), "no value")
            try:
                errors = parse(_unframed(value) if self.framed else value)
            # Whatever a parser stumbles over, it is the value: what a schema may be at fault for was tried before.
            except Exception as error:
                return _kind(error), _sentence(error)
            if not errors:
                return None
            more = f"; and {len(errors) - MOST_ERRORS} more" if len(errors) > MOST_ERRORS else ""
            told = "; ".join(_sentence(error) for error in errors[:MOST_ERRORS]) + more
            return _kind(errors[0]), told[:LONGEST]

        return check


def load(path: Path, language: str | None, *, formats: bool, framed: bool, tombstones: bool) -> Schema:
    """Reads a schema; its language follows from the file's name (.avsc is Avro) unless it is given. Raises Fault."""
    chosen = language or ("avro" if path.suffix == ".avsc" else "json")
    try:
        contents = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Fault(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise Fault(f"{path} is not JSON: {error}") from None
    if chosen == "avro":
        if formats:
            raise Fault("--formats is for JSON Schema")
        contents = _parsed_avro(path, contents)
    else:
        _demand_sound(path, contents, formats=formats)
    return Schema(chosen, contents, formats, framed, tombstones)


def _unframed(value: bytes) -> bytes:
    if len(value) < FRAME or value[0] != 0:
        raise Bad(f"not the {FRAME} bytes of a schema registry before the value: {value[:FRAME].hex(' ')}")
    return value[FRAME:]


def _kind(error: Exception) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def _sentence(error: Exception) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, jsonschema.ValidationError):
        text = f"{error.json_path}: {error.message}"
    # JSON may escape half of a surrogate pair, which no encoding has.
    return text.encode("utf-8", "backslashreplace").decode()[:LONGEST]


# JSON


def _json(contents: Any, *, formats: bool) -> Callable[[bytes], list[Exception]]:
    """Finds everything in a value that the schema does not admit; raises ValueError where it is no JSON."""
    draft = jsonschema.validators.validator_for(contents)
    checker = draft.FORMAT_CHECKER if formats else None
    # With a registry of ours nothing is fetched: references were resolved when the schema was loaded.
    validator = jsonschema.validators.extend(draft, {"multipleOf": _multiple_of})(
        contents, format_checker=checker, registry=DRAFTS
    )

    def parse(value: bytes) -> list[Exception]:
        datum = json.loads(value.decode("utf-8"), parse_constant=_refuse_constant)
        return sorted(validator.iter_errors(datum), key=lambda error: (error.json_path, error.message))

    return parse


def _multiple_of(validator: Any, step: float, datum: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """By what is written there, in tens: 19.99 is a multiple of 0.01, though its nearest binary fraction is none."""
    if not validator.is_type(datum, "number"):
        return
    # A number that is too large for a float is infinite by now.
    if not math.isfinite(datum) or (Fraction(str(datum)) / Fraction(str(step))).denominator != 1:
        yield jsonschema.ValidationError(f"{datum!r} is not a multiple of {step!r}")


def _refuse_constant(name: str) -> NoReturn:
    """Python reads them; JSON has none."""
    raise Bad(f"{name} is not JSON")


def _demand_sound(path: Path, contents: Any, *, formats: bool) -> None:
    """Raises Fault for what would go wrong later, or silently."""
    draft = jsonschema.Draft202012Validator
    if isinstance(contents, Mapping) and "$schema" in contents:
        name = contents["$schema"]
        draft = jsonschema.validators.validator_for(contents, default=None) if isinstance(name, str) else None
        if draft is None:
            raise Fault(f"{path}: unknown draft {name!r}")
    try:
        draft.check_schema(contents)
    except jsonschema.SchemaError as error:
        raise Fault(f"{path} is not a JSON Schema: {_sentence_of_schema(error)}") from None
    specification = referencing.jsonschema.specification_with(draft.META_SCHEMA.get("$schema"))
    schema = specification.create_resource(contents)
    start = schema.id() or ""
    registry = DRAFTS.with_resource(start, schema)
    for resolver, reference in _references(schema, registry.resolver(start)):
        try:
            resolver.lookup(reference)
        except referencing.exceptions.Unresolvable:
            raise Fault(f"{path}: nothing is at the reference {reference!r}; other files are not read") from None
    missing = sorted(_formats(contents) - draft.FORMAT_CHECKER.checkers.keys()) if formats else []
    if missing:
        raise Fault(
            f"{path}: nothing here checks the format {', '.join(missing)}; pip install 'jsonschema[format]' may help"
        )


def _sentence_of_schema(error: jsonschema.SchemaError) -> str:
    return f"{error.json_path}: {error.message}".split("\n", 1)[0][:LONGEST]


def _references(schema: referencing.Resource[Any], resolver: Any) -> Iterator[tuple[Any, str]]:
    """Every reference, and what resolves it there."""
    if isinstance(schema.contents, Mapping):
        for name in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = schema.contents.get(name)
            if isinstance(reference, str):
                yield resolver, reference
    for inner in schema.subresources():
        yield from _references(inner, resolver.in_subresource(inner))


def _formats(contents: Any) -> set[str]:
    """The formats that a schema names; a property of that name has a schema there, not a text."""
    if isinstance(contents, Mapping):
        own = {contents["format"]} if isinstance(contents.get("format"), str) else set()
        quoted = {"const", "enum", "default", "examples"}
        return own.union(*(_formats(inner) for name, inner in contents.items() if name not in quoted))
    if isinstance(contents, list):
        return set().union(*(_formats(inner) for inner in contents))
    return set()


# Avro


def _parsed_avro(path: Path, contents: Any) -> Any:
    """The schema with its names resolved; named types may be in files of their own beside it, NAME.avsc."""
    try:
        return fastavro.schema.load_schema(str(path))
    # Its own errors have no common class, and broken schemas end in KeyError and TypeError too.
    except Exception as error:
        raise Fault(f"{path} is not an Avro schema: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    text = str(error).strip().split("\n", 1)[0]
    if isinstance(error, TypeError):
        return f"no schema where one should be ({text})"
    return f"{text} is missing" if isinstance(error, KeyError) else text


class _Source(io.BytesIO):
    """Knows whether it was asked for more than there is."""

    short = False

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.short = self.short or (size or 0) > len(found)
        return found


def _avro(contents: Any) -> Callable[[bytes], list[Exception]]:
    """Raises an error for what is not one whole datum; finds numbers and symbols beyond the schema's bounds."""

    def parse(value: bytes) -> list[Exception]:
        source = _Source(value)
        try:
            datum = fastavro.schemaless_reader(source, contents)
        except Exception:
            # Where the value ends too early the reader has several errors, some of which have other causes too.
            if source.short:
                raise EOFError(f"the value ends within the datum, after {len(value)} bytes") from None
            raise
        left = len(value) - source.tell()
        if left:
            raise Bad(f"{left} bytes are left after the datum")
        # The reader takes a long where an int should be, which other languages refuse.
        fastavro.validation.validate(datum, contents, raise_errors=True)
        return []

    return parse
