"""Lines of JSON, each one value. Spark's parser stops where the first value ends: what follows would be lost unseen."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, StructType

from spark_jobs.columns import MALFORMED, wider

_END = "the end of this line"
_BLANKS = " \t\r\n"


def one_value(text: Column, options: Mapping[str, str] | None = None) -> Column:
    """Whether nothing follows the first JSON value of a text; never null. `options` are those of Spark's parser."""
    # Most are an object without others in it: it ends with its first brace.
    plain = text.startswith("{") & (f.instr(text, "}") == f.length(text))
    # A list of the text and a mark: the mark is its second element only if the text is one element.
    # The text may end with a comment, which ends with its line.
    marked = f.concat(f.lit("["), text, f.lit(f'\n,"{_END}"]'))
    # Fast, but it knows neither NaN nor what the options allow: where it says no, the parser itself is asked.
    fast = f.get_json_object(marked, "$[1]").eqNullSafe(_END)
    slow = f.get(f.from_json(marked, "array<string>", dict(options or {})), f.lit(1)).eqNullSafe(_END)
    return f.coalesce(plain, f.lit(False)) | fast | slow


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
    found = f.when(f.ltrim(value, f.lit(_BLANKS)).startswith("["), listed).otherwise(
        f.array(f.from_json(value, wide, reading))
    )
    # Parsed from text, bytes that are no UTF-8 would become other characters.
    well = f.is_valid_utf8(value) & one_value(value, reading)
    shown = lines.where(f.btrim(value, f.lit(_BLANKS)) != "").select("value", "_metadata", well.alias("well"))
    rows = f.coalesce(f.when(f.col("well"), found), malformed)
    return shown.select(f.explode(rows).alias("row"), "_metadata").select("row.*", "_metadata")
