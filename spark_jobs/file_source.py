"""Rows of files as a stream, with the text of those that could not be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from spark_jobs import json_lines
from spark_jobs.case_sensitive import case_sensitive
from spark_jobs.columns import MALFORMED, repeated, schema_of, wider
from spark_jobs.faults import Fault

_OURS = {
    "columnnameofcorruptrecord",
    "maxbytespertrigger",
    "maxfileage",
    "maxfilespertrigger",
    "mode",
    "path",
    "pathglobfilter",
    "recursivefilelookup",
    "wholetext",
}
"""Options that are not the user's to give, in small letters, as Spark compares them."""
_METADATA = "_metadata"


@dataclass(frozen=True)
class FileSource:
    """Files of one format: those that `pattern` stands for, and those in its folders, if their names match."""

    kind: str
    pattern: str
    options: Mapping[str, str]
    """Of Spark's reader of that format."""
    names: str | None
    as_text: bool = False
    """Whether the columns of CSV are text, whatever they look like."""

    def __post_init__(self) -> None:
        taken = sorted(name for name in self.options if name.lower() in _OURS)
        if taken:
            raise Fault(f"--option {', '.join(taken)}: the job itself sets that")

    def given_schema(self, ddl: str) -> StructType:
        """Raises Fault where it is not understood."""
        schema = schema_of(ddl)
        if not schema.fields:
            raise Fault("--schema names no column")
        if self.kind == "text" and schema.simpleString() != "struct<value:string>":
            raise Fault("text has one column, value STRING")
        return self._sound(schema)

    def inferred_schema(self, spark: SparkSession) -> StructType:
        """Of all files that are there. Raises Fault where there is nothing to infer it from."""
        try:
            schema = self._inferred(spark)
        except AnalysisException as error:
            if _twice(error) is None:
                raise
            schema = self._inferred_with_case(spark)
        if not schema.fields:
            raise Fault("the files have no row to take a schema from: give --schema")
        return self._sound(schema)

    def stream(self, spark: SparkSession, schema: StructType, most: Mapping[str, int]) -> DataFrame:
        """Its rows, with MALFORMED and `_metadata`. `most` are the options that make a batch small."""
        by_lines = self.kind == "json" and not self._given("multiLine", "encoding", "charset")
        reader = spark.readStream.format("text" if by_lines else self.kind)
        reader = reader.options(**self._reading(len(schema)), **most)
        # Spark would leave out a file that is a week older than another one: one that was moved here, or unpacked.
        reader = reader.option("maxFileAge", "36500d")
        if by_lines:
            return json_lines.rows_of(reader.load(self.pattern).select("value", _METADATA), schema, self.options)
        if not self._checked:
            rows = reader.schema(schema).load(self.pattern)
            return rows.select("*", f.lit(None).cast("string").alias(MALFORMED), _METADATA)
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=MALFORMED)
        rows = reader.schema(wider(self._as_in_header(spark, schema))).load(self.pattern).select("*", _METADATA)
        return rows.toDF(*schema.names, MALFORMED, _METADATA)

    def _inferred_with_case(self, spark: SparkSession) -> StructType:
        """Where names may differ by case only."""
        try:
            with case_sensitive(spark):
                return self._inferred(spark)
        except AnalysisException as error:
            name = _twice(error)
            if name is None:
                raise
            raise Fault(f"{name} comes twice in a row: {self._other_columns}") from None

    def _inferred(self, spark: SparkSession) -> StructType:
        if self.kind == "csv":
            schema = self._inferred_with(spark, columns=2)
            return schema if len(schema) > 1 else self._inferred_with(spark, columns=1)
        return self._inferred_with(spark)

    def _inferred_with(self, spark: SparkSession, columns: int | None = None) -> StructType:
        reader = spark.read.format(self.kind).options(**self._reading(columns))
        if self._checked:
            reader = reader.options(mode="DROPMALFORMED", inferSchema=str(not self.as_text).lower())
        return reader.load(self.pattern).schema

    def _sound(self, schema: StructType) -> StructType:
        """The same. Raises Fault where it has names that a row can't have."""
        for name in schema.names:
            if name.lower() in (MALFORMED, _METADATA):
                raise Fault(f"a column is named {name}, as the job names one of its own: {self._other_columns}")
        twice = repeated(schema)
        if twice is not None:
            raise Fault(f"{twice} comes twice in a row: {self._other_columns}")
        return schema

    @property
    def _other_columns(self) -> str:
        if self.kind == "csv":
            return "name all columns with --schema, by their places with --option enforceSchema=true"
        return "name those that are to be read with --schema"

    def _as_in_header(self, spark: SparkSession, schema: StructType) -> StructType:
        """With the names as CSV files have them: Spark calls a column without a name `_c` and its number."""
        unnamed = [place for place, name in enumerate(schema.names) if name == f"_c{place}"]
        if self.kind != "csv" or not unnamed or not self._headed:
            return schema
        reader = spark.read.format("csv").options(**{**self._reading(), "header": "false"})
        header = reader.load(self.pattern).head()
        if header is None:
            return schema
        fields = list(schema.fields)
        for place in unnamed:
            if place < len(header) and header[place] is None:
                fields[place] = StructField("", fields[place].dataType)
        return StructType(fields)

    @property
    def _checked(self) -> bool:
        """Whether Spark tells which rows of such files are malformed."""
        return self.kind in ("json", "csv")

    @property
    def _headed(self) -> bool:
        return any(name.lower() == "header" and value.lower() == "true" for name, value in self._reading().items())

    def _given(self, *names: str) -> bool:
        """Whether one of these options is given, and not as false."""
        given = {name.lower() for name, value in self.options.items() if value.lower() != "false"}
        return any(name.lower() in given for name in names)

    def _reading(self, columns: int | None = None) -> dict[str, str]:
        options = {"recursiveFileLookup": "true"}
        if self.names is not None:
            options["pathGlobFilter"] = self.names
        if self.kind == "csv":
            # Names are compared with the schema: without that, columns in another order would be taken for each other.
            # Quotes in quotes are doubled, by RFC 4180; Spark's own default is a backslash.
            options |= {"header": "true", "enforceSchema": "false", "escape": '"'}
            # Where a row has several columns, a line break in quotes makes two malformed rows of it. Of one column
            # it would make two that look well.
            options |= {"multiLine": "true"} if columns == 1 else {}
        given = {name.lower() for name in self.options}
        return {name: value for name, value in options.items() if name.lower() not in given} | dict(self.options)


def _twice(error: AnalysisException) -> str | None:
    """The name that is there twice, if the error says that."""
    found = re.match(r"\[COLUMN_ALREADY_EXISTS\] The column (`.*?`) already exists", str(error))
    return found and found[1].strip("`")
