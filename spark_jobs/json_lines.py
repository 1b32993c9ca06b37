"""Lines of JSON, each one value."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructType

from spark_jobs.columns import MALFORMED, wider
from spark_jobs.single_json import BLANKS, one_value


def rows_of(lines: DataFrame, schema: StructType, options: Mapping[str, str]) -> DataFrame:
    """The objects in the column `value`, with MALFORMED, beside `_metadata`. A line may be a list of objects, too."""
    value = f.col("value")
    reading = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    wide = wider(schema)
    nothing = [f.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields]
    malformed = f.array(f.struct(*nothing, value.alias(MALFORMED)))

    def element(text: Column, row: Column) -> Column:
        told = f.coalesce(f.from_json(text, wide, reading)[MALFORMED], f.when(row.isNull(), f.coalesce(text, value)))
        return f.struct(*(row[field.name].alias(field.name) for field in schema.fields), told.alias(MALFORMED))

    # A text of an element may have fewer digits than the line: values are of the line.
    texts = f.from_json(value, "array<string>", reading)
    values = f.from_json(value, ArrayType(schema), reading)
    listed = f.when(f.size(texts) == f.size(values), f.zip_with(texts, values, element))
    found = f.when(f.ltrim(value, f.lit(BLANKS)).startswith("["), listed).otherwise(
        f.array(f.from_json(value, wide, reading))
    )
    # Parsed from text, bytes that are no UTF-8 would become other characters.
    well = f.is_valid_utf8(value) & one_value(value, reading)
    shown = lines.where(f.btrim(value, f.lit(BLANKS)) != "").select("value", "_metadata", well.alias("well"))
    rows = f.coalesce(f.when(f.col("well"), found), malformed)
    return shown.select(f.explode(rows).alias("row"), "_metadata").select("row.*", "_metadata")
