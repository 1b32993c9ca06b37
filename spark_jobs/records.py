"""The parts of a record, made by SQL."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as f


def as_bytes(sql: str) -> Column:
    """What an expression gives, as text in UTF-8; bytes stay as they are."""
    return f.expr(sql).cast("string").cast("binary")


def header(name: str, content: Column) -> Column:
    """One header."""
    return f.struct(f.lit(name).alias("key"), content.cast("binary").alias("value"))


def headers_of(expressions: Mapping[str, str]) -> Column:
    """Headers, each of an expression; none is null, as a record without headers has it."""
    if not expressions:
        return f.lit(None).cast("array<struct<key:string,value:binary>>")
    return f.array(*(header(name, as_bytes(sql)) for name, sql in expressions.items()))
