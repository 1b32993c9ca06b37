"""Records whose values are JSON, taken apart into columns, and put together again."""

from __future__ import annotations

from collections.abc import Iterable

import click
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_jobs.columns import MALFORMED, schema_of, wider
from spark_jobs.single_json import single

RECORD = "record"
"""The column with the record itself: a struct of key and value (both binary), headers, topic, partition, offset and
timestamp."""
_JSON = "_json"

malformed = click.option(
    "--malformed",
    type=click.Choice(["fail", "drop"]),
    default="fail",
    help="What to do with a value that is not JSON of its schema.",
)
"""For jobs that take values apart."""


def whole(records: DataFrame) -> DataFrame:
    """Each record as one column, RECORD."""
    parts = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
    return records.select(f.struct(*parts).alias(RECORD))


def events(records: DataFrame, schema: str, malformed: str) -> DataFrame:
    """RECORD, and a column for each field of its value; see `taken_apart`."""
    return taken_apart(whole(records), f"{RECORD}.value", schema, malformed)


def taken_apart(rows: DataFrame, value: str, schema: str, malformed: str) -> DataFrame:
    """The rows with a column more for each field of the schema, such as "carrier STRING, flight INT".

    Rows without a value are left out. One with a value that does not follow the schema ends the query, or is left out
    too, where `malformed` is "drop". Raises Fault where the schema is none.
    """
    drop = malformed == "drop"
    struct = wider(schema_of(schema)) if drop else schema_of(schema)
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED} if drop else {"mode": "FAILFAST"}
    json = f.from_json(single(f.col(value).cast("string")), struct, options)
    found = rows.withColumn(_JSON, json).where(f.col(_JSON).isNotNull()).select(*rows.columns, f"{_JSON}.*")
    return found.where(f.col(MALFORMED).isNull()).drop(MALFORMED) if drop else found


def json_of(columns: Iterable[str | Column] | str) -> Column:
    """A JSON object of these columns, or of a list in SQL such as "origin, dep_delay / 60 AS hours"; nulls are in it,
    and times are in UTC, whatever Spark's own zone is."""
    parts = f.expr(f"struct({columns})") if isinstance(columns, str) else f.struct(*columns)
    return f.to_json(parts, {"ignoreNullFields": "false", "timeZone": "UTC"})
