"""Columns that a user names: schemas given as DDL, and what is malformed."""

from __future__ import annotations

from pyspark.errors import ParseException
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from spark_jobs.faults import Fault

MALFORMED = "_malformed"
"""The column with the text of a malformed row; null where a row is well."""


def schema_of(ddl: str) -> StructType:
    """Raises Fault where it is not understood. There must be a Spark."""
    try:
        return StructType.fromDDL(ddl)
    except ParseException as error:
        raise Fault(f"{ddl!r} is no schema: {str(error).strip().splitlines()[0]}") from None


def wider(schema: StructType) -> StructType:
    """With MALFORMED, for readers that have it as their `columnNameOfCorruptRecord`."""
    return StructType([*schema.fields, StructField(MALFORMED, StringType())])


def quoted(name: str) -> Column:
    """The column of exactly that name, which may have dots."""
    return f.col("`" + name.replace("`", "``") + "`")


def repeated(of: DataType, *, case: bool = True) -> str | None:
    """A name that comes twice in it, or in one of its parts; `case` says whether a and A are two names."""
    parts: list[DataType] = []
    if isinstance(of, StructType):
        names = [name if case else name.lower() for name in of.names]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            return twice[0]
        parts = [field.dataType for field in of.fields]
    elif isinstance(of, ArrayType):
        parts = [of.elementType]
    elif isinstance(of, MapType):
        parts = [of.valueType]
    return next(filter(None, (repeated(part, case=case) for part in parts)), None)
