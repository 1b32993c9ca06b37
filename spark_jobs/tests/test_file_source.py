"""Rows of files, as CSV and JSON have them: what is in them, and what is malformed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs import files
from spark_jobs.case_sensitive import case_sensitive
from spark_jobs.faults import Fault
from spark_jobs.file_source import FileSource

pytestmark = pytest.mark.xdist_group("spark-2")

Read = Callable[..., list[tuple]]


@pytest.fixture
def read(spark: SparkSession, tmp_path: Path) -> Read:
    """The rows of a file with this content: its columns, then the text of those that are malformed."""

    def call(kind: str, content: str | bytes, schema: str | None = None, **options: str) -> list[tuple]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        file = folder / f"file.{kind}"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        as_text = bool(options.pop("as_text", ""))
        source = FileSource(kind, files.pattern([file]), options, None, as_text)
        columns = source.given_schema(schema) if schema else source.inferred_schema(spark)
        rows = source.stream(spark, columns, {}).drop("_metadata")
        query = rows.writeStream.format("memory").queryName("rows").trigger(availableNow=True).start()
        query.awaitTermination()
        return [tuple(row) for row in spark.table("rows").collect()]

    return call


def test_quotes_in_quotes_are_doubled_and_a_backslash_is_a_backslash(read: Read) -> None:
    lines = [
        '1,"she said ""x""",1',
        '2,"a ""b"" c",2',
        '3,"""start"" end",3',
        '4,"C:\\dir\\",4',
        '5,"say ""hi"", then",5',
    ]
    assert read("csv", "\n".join(["id,text,n", *lines])) == [
        (1, 'she said "x"', 1, None),
        (2, 'a "b" c', 2, None),
        (3, '"start" end', 3, None),
        (4, "C:\\dir\\", 4, None),
        (5, 'say "hi", then', 5, None),
    ]


def test_another_escape_can_be_chosen(read: Read) -> None:
    assert read("csv", 'id,text\n1,"a \\"b\\" c"', ESCAPE="\\") == [(1, 'a "b" c', None)]


def test_a_line_break_in_quotes_in_a_file_of_one_column(read: Read) -> None:
    content = 'text\n"line one\nline two"\nok\n'
    expected = [("line one\nline two", None), ("ok", None)]
    assert read("csv", content) == expected
    assert read("csv", content, "text STRING") == expected


def test_a_line_break_in_quotes_among_columns_is_malformed_unless_lines_may_be_many(read: Read) -> None:
    content = 'id,text\n1,"line one\nline two"\n2,ok\n'
    assert [row[-1] for row in read("csv", content, "id INT, text STRING")] == [None, 'line two"', None]
    assert read("csv", content, multiLine="true") == [(1, "line one\nline two", None), (2, "ok", None)]


def test_a_column_without_a_name(read: Read) -> None:
    content = ",a,b\n0,1,x\n1,2,y\n"
    assert read("csv", content) == [(0, 1, "x", None), (1, 2, "y", None)]
    assert read("csv", content, "_c0 STRING, a INT, b STRING") == [("0", 1, "x", None), ("1", 2, "y", None)]
    assert read("csv", "_c0,a\n0,1\n") == [(0, 1, None)]


def test_all_as_text_changes_nothing(read: Read) -> None:
    content = "zip,price\n01234,1.10\n"
    assert read("csv", content, as_text="yes") == [("01234", "1.10", None)]


FOLLOWED = [
    '{"a":1}{"a":2}',
    '{"a":3},{"a":4}',
    '{"a":3} trailing',
    '{"a":3}]',
    '{"a":3},{"a":4}]',
    '{"a":{"b":1}}}',
    "{} 7",
]


def test_json_lines_with_something_behind_the_object_are_malformed(read: Read) -> None:
    rows = read("json", "\n".join(['{"a":0}', *FOLLOWED, '{"a":5}']), "a INT")
    assert [row[0] for row in rows if row[1] is None] == [0, 5]
    assert [row[1] for row in rows if row[1] is not None] == FOLLOWED


def test_json_lines_that_are_well(read: Read) -> None:
    lines = ['{"a":1,"b":"}{ },{"}', ' {"a":2} ', "{'a':3}", '{"a":4,"o":{"x":[{}]}}\r', "", "  ", "[]", "{}"]
    lines += ['[{"a":5},{"a":6,"d":12345678901234567.12}]', '{"d":12345678901234567.13}']
    rows = read("json", "\n".join(lines), "a INT, b STRING, d DECIMAL(20, 2)")
    assert [(row[0], row[1], row[2] and str(row[2]), row[3]) for row in rows] == [
        (1, "}{ },{", None, None),
        (2, None, None, None),
        (3, None, None, None),
        (4, None, None, None),
        (None, None, None, None),
        (5, None, None, None),
        (6, None, "12345678901234567.12", None),
        (None, None, "12345678901234567.13", None),
    ]


def test_json_with_a_byte_order_mark_or_numbers_that_are_none(read: Read) -> None:
    ((first, _), (second, text)) = read("json", '\ufeff{"f":1}\n{"f":NaN}', "f DOUBLE")
    assert first == 1
    assert math.isnan(second)
    assert text is None


def test_json_with_the_options_of_the_reader(read: Read) -> None:
    options = {"allowComments": "true", "allowUnquotedFieldNames": "true", "lineSep": "|"}
    content = '{a:1} // one|/* two */{"a":2}|{a:3} 4'
    assert read("json", content, "a INT", **options) == [(1, None), (2, None), (None, "{a:3} 4")]


def test_of_a_list_only_the_malformed_elements_are(read: Read) -> None:
    content = '[{"a":1},{"a":"x"},{"a":3}]\n[{"a":4},5]\n[{"a":6}'
    assert read("json", content, "a INT") == [
        (1, None),
        (None, '{"a":"x"}'),
        (3, None),
        (None, '[{"a":4},5]'),
        (None, '[{"a":6}'),
    ]


def test_json_that_is_no_utf_8_is_malformed(read: Read) -> None:
    ((a, text),) = read("json", '{"a":"Zürich"}'.encode("latin-1"), "a STRING")
    assert a is None
    assert "rich" in text


def test_json_of_many_lines_or_another_encoding(read: Read) -> None:
    assert read("json", '[{"a":\n1},\n{"a":2}]', "a INT", multiLine="true") == [(1, None), (2, None)]
    content = '{"a":"ü"}\n'.encode("utf-16-le")
    assert read("json", content, "a STRING", encoding="UTF-16LE", lineSep="\n") == [("ü", None)]


def test_names_that_differ_by_case(spark: SparkSession, read: Read) -> None:
    with case_sensitive(spark):
        assert read("json", '{"a":1,"A":2}', "a INT, A INT") == [(1, 2, None)]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"a":1}\n{"a":4,"a":44}', "a comes twice in a row: name those that are to be read with --schema"),
        ('{"o":[{"x":4,"x":44}]}', "x comes twice in a row: name"),
        ('{"_metadata":1}', "a column is named _metadata"),
        ('{"_malformed":1,"a":2}', "a column is named _malformed"),
    ],
)
def test_names_that_a_row_cannot_have(read: Read, content: str, told: str) -> None:
    with pytest.raises(Fault, match=told):
        read("json", content)
    assert read("json", content, "b INT")[0] == (None, None)


def test_a_schema_without_columns(read: Read) -> None:
    with pytest.raises(Fault, match="--schema names no column"):
        read("csv", "a\n1", " ")
