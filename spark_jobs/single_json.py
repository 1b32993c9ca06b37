"""Texts that hold one JSON value: Spark's `from_json` takes the first of several, and whatever stands behind it."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructType

_OBJECTS = ArrayType(StructType())
"""Without fields: Spark's parser then goes through the text and keeps nothing of it."""
_MALFORMED = "?"


def single(text: Column) -> Column:
    """The text, for `from_json` with a struct; or one that is malformed, where anything follows its first object.

    As an array's element it must be that array's only one, and followed by another it must be one of two: a text that
    ends the array itself, as `{}]` does, gives the same number twice.
    """
    alone, followed = (
        f.array_size(f.from_json(f.concat(f.lit("["), text, f.lit(end)), _OBJECTS)) for end in ("]", ",null]")
    )
    blank = alone == 0
    return f.when(text.isNull() | blank | ((alone == 1) & (followed == 2)), text).otherwise(_MALFORMED)
