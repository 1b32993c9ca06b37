"""Which values a schema lets pass, and what is said of the others and of broken schemas; without Spark."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from spark_jobs.checks import LONGEST, Check, load
from spark_jobs.faults import Fault
from spark_jobs.tests import nyc

HERE = Path(__file__).parent
JSON_SCHEMA = HERE / "flight.schema.json"
AVRO_SCHEMA = HERE / "flight.avsc"
DATUM = fastavro.schema.load_schema(str(AVRO_SCHEMA))


def check_of(path: Path, **options: bool) -> Check:
    return load(path, None, **{"formats": False, "framed": False, "tombstones": False, **options}).check()


def avro(row: Any, schema: Any = DATUM) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, schema, row)
    return target.getvalue()


def schema_file(folder: Path, contents: object, name: str = "schema.json") -> Path:
    path = folder / name
    path.write_text(contents if isinstance(contents, str) else json.dumps(contents))
    return path


def test_every_error_of_a_value_is_told_with_its_place() -> None:
    row = {**nyc.every(16)[7], "distance": "719", "month": 13, "gate": "B22"}
    del row["dest"]
    kind, message = check_of(JSON_SCHEMA)(json.dumps(row).encode()) or ("", "")
    assert kind == "jsonschema.exceptions.ValidationError"
    assert message.split("; ") == [
        "$: 'dest' is a required property",
        "$: Additional properties are not allowed ('gate' was unexpected)",
        "$.distance: '719' is not of type 'integer'",
        "$.month: 13 is greater than the maximum of 12",
    ]


def test_a_long_value_is_not_told_whole(tmp_path: Path) -> None:
    _, message = check_of(schema_file(tmp_path, {"type": "integer"}))(json.dumps(["x" * 50_000]).encode()) or ("", "")
    assert message.startswith("$: ['xxx")
    assert len(message) == LONGEST


def test_formats_are_demanded_where_they_are_asked_for() -> None:
    value = json.dumps({**nyc.every(16)[0], "date": "2013-02-30"}).encode()
    assert check_of(JSON_SCHEMA)(value) is None
    _, message = check_of(JSON_SCHEMA, formats=True)(value) or ("", "")
    assert message == "$.date: '2013-02-30' is not a 'date'"


@pytest.mark.parametrize(
    ("value", "kind", "part"),
    [
        (b"", "json.decoder.JSONDecodeError", "Expecting value"),
        (b'{"date": "2013-01-01", "carr', "json.decoder.JSONDecodeError", "Unterminated string"),
        (b'{"distance": NaN}', "spark_jobs.checks.Bad", "NaN is not JSON"),
        ('{"dest": "ORD"}'.encode("utf-16"), "UnicodeDecodeError", "invalid"),
        (b"\xef\xbb\xbf{}", "json.decoder.JSONDecodeError", "BOM"),
        (b"[" * 200_000, "RecursionError", "recursion"),
        (b"9" * 5000, "ValueError", "digits"),
        (None, "spark_jobs.checks.Bad", "no value"),
    ],
    ids=["empty", "cut", "NaN", "UTF-16", "BOM", "deep", "long number", "none"],
)
def test_what_is_no_json_is_told_by_its_kind(value: bytes | None, kind: str, part: str) -> None:
    assert (found := check_of(JSON_SCHEMA)(value)) is not None
    assert found[0] == kind
    assert part in found[1]


def test_what_is_told_of_half_a_character_can_be_written(tmp_path: Path) -> None:
    """JSON may escape half of a surrogate pair, which no encoding has."""
    texts = schema_file(tmp_path, {"additionalProperties": {"type": "string"}})
    told = check_of(texts)(rb'{"\ud800": 5}')
    assert told == ("jsonschema.exceptions.ValidationError", r"$['\ud800']: 5 is not of type 'string'")
    _, message = check_of(texts)(json.dumps({"\ud800" * LONGEST: 5}).encode()) or ("", "")
    assert len(message.encode()) == LONGEST
    number = schema_file(
        tmp_path, {"type": "record", "name": "R", "fields": [{"name": "\ud800", "type": "int"}]}, "half.avsc"
    )
    _, message = check_of(number)(avro(1 << 40, "long")) or ("", "")
    assert r"R.\ud800 is <1099511627776>" in message


def test_a_record_without_value_is_good_where_tombstones_are() -> None:
    assert check_of(JSON_SCHEMA, tombstones=True)(None) is None
    assert check_of(AVRO_SCHEMA, tombstones=True)(None) is None
    assert check_of(AVRO_SCHEMA, tombstones=True)(b"") is not None


def test_the_frame_of_a_schema_registry_is_taken_off_and_demanded() -> None:
    framed = check_of(AVRO_SCHEMA, framed=True)
    datum = avro(nyc.every(16)[0])
    assert framed(b"\0\0\0\0\7" + datum) is None
    for value in (datum, b"\1\0\0\0\7" + datum, b"\0\0"):
        found = framed(value)
        assert found is not None
        assert "5 bytes of a schema registry" in found[1]


def test_every_flight_is_a_datum_and_no_part_of_one_is() -> None:
    check = check_of(AVRO_SCHEMA)
    for row in nyc.every(400):
        datum = avro(row)
        assert check(datum) is None
        for cut in range(len(datum)):
            assert check(datum[:cut]) == ("EOFError", f"the value ends within the datum, after {cut} bytes")
        assert check(datum + b"\0") == ("spark_jobs.checks.Bad", "1 bytes are left after the datum")


@pytest.mark.parametrize(
    ("field", "replacement"),
    [("distance", {"name": "distance", "type": "long"}), ("origin", {"name": "origin", "type": "int"})],
)
def test_numbers_beyond_an_int_and_symbols_beyond_an_enum_are_bad(field: str, replacement: dict[str, Any]) -> None:
    other = json.loads(AVRO_SCHEMA.read_text())
    other["fields"] = [replacement if each["name"] == field else each for each in other["fields"]]
    row = {**nyc.every(16)[0], field: 2**40 if field == "distance" else 7}
    assert check_of(AVRO_SCHEMA)(avro(row, fastavro.parse_schema(other))) is not None


def test_a_named_type_may_be_in_a_file_beside_the_schema(tmp_path: Path) -> None:
    schema_file(tmp_path, {"type": "enum", "name": "Origin", "symbols": ["EWR", "JFK"]}, "Origin.avsc")
    leg = {"type": "record", "name": "Leg", "fields": [{"name": "origin", "type": "Origin"}]}
    check = check_of(schema_file(tmp_path, leg, "leg.avsc"))
    assert check(b"\2") is None
    assert check(b"\4") is not None


@pytest.mark.parametrize(
    ("contents", "name", "line"),
    [
        ("{", "schema.json", "is not JSON: Expecting"),
        ({"$schema": "http://example.com/mine"}, "schema.json", "unknown draft 'http://example.com/mine'"),
        ({"$schema": 7}, "schema.json", "unknown draft 7"),
        ({"type": "whole"}, "schema.json", "is not a JSON Schema: $.type: 'whole' is not valid"),
        ({"pattern": "(a"}, "schema.json", "is not a JSON Schema: $.pattern: '(a' is not a 'regex'"),
        ({"$ref": "#/$defs/flight"}, "schema.json", "nothing is at the reference '#/$defs/flight'"),
        ({"items": {"$ref": "other.json"}}, "schema.json", "nothing is at the reference 'other.json'"),
        ({"format": "rhyme"}, "schema.json", "nothing here checks the format rhyme"),
        ([1], "schema.json", "is not a JSON Schema: $: [1] is not of type 'object', 'boolean'"),
        ("{", "schema.avsc", "is not JSON: Expecting"),
        ({"type": "record"}, "schema.avsc", 'is not an Avro schema: "name" is a required field'),
        ({"type": "whole"}, "schema.avsc", "is not an Avro schema: {'type': 'whole'}"),
        ([1], "schema.avsc", "is not an Avro schema: no schema where one should be"),
    ],
)
def test_a_broken_schema_is_one_clear_line(tmp_path: Path, contents: object, name: str, line: str) -> None:
    path = schema_file(tmp_path, contents, name)
    with pytest.raises(Fault) as raised:
        load(path, None, formats=name.endswith(".json"), framed=False, tombstones=False)
    assert str(raised.value).startswith(f"{path}")
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_schema_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"none\.json: No such file or directory"):
        load(tmp_path / "none.json", None, formats=False, framed=False, tombstones=False)


@pytest.mark.parametrize(
    "draft", ["draft-03/schema#", "draft-04/schema#", "draft-06/schema#", "draft-07/schema#", "draft/2019-09/schema"]
)
def test_older_drafts_are_known(tmp_path: Path, draft: str) -> None:
    scheme = "https" if "2019" in draft else "http"
    place = "definitions" if "2019" not in draft else "$defs"
    contents = {
        "$schema": f"{scheme}://json-schema.org/{draft}",
        place: {"airport": {"type": "string"}},
        "properties": {"dest": {"$ref": f"#/{place}/airport"}},
    }
    check = check_of(schema_file(tmp_path, contents))
    assert check(b'{"dest": "ORD"}') is None
    assert check(b'{"dest": 1}') is not None


def test_multiples_are_counted_in_tens(tmp_path: Path) -> None:
    path = tmp_path / "price.schema.json"
    path.write_text('{"type": "number", "multipleOf": 0.01}')
    check = check_of(path)
    assert [check(value) for value in (b"19.99", b"0.07", b"8.61", b"1e2", b"-3", b"7")] == [None] * 6
    told = check(b"0.005")
    assert told is not None
    assert told[1] == "$: 0.005 is not a multiple of 0.01"
    told = check(b"1e400")
    assert told is not None
    assert told[1] == "$: inf is not a multiple of 0.01"
