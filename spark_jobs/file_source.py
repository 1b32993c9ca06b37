"""Rows of files as a stream, with the text of those that could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from spark_jobs.columns import MALFORMED, schema_of, wider
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
}
"""Options that are not the user's to give, in small letters, as Spark compares them."""


@dataclass(frozen=True)
class FileSource:
    """Files of one format: those that `pattern` stands for, and those in its folders, if their names match."""

    kind: str
    pattern: str
    options: Mapping[str, str]
    """Of Spark's reader of that format."""
    names: str | None

    def __post_init__(self) -> None:
        taken = sorted(name for name in self.options if name.lower() in _OURS)
        if taken:
            raise Fault(f"--option {', '.join(taken)}: the job itself sets that")

    def given_schema(self, ddl: str) -> StructType:
        """Raises Fault where it is not understood."""
        schema = schema_of(ddl)
        if self.kind == "text" and schema.simpleString() != "struct<value:string>":
            raise Fault("text has one column, value STRING")
        return schema

    def inferred_schema(self, spark: SparkSession) -> StructType:
        """Of all files that are there. Raises Fault where there is nothing to infer it from."""
        reader = spark.read.format(self.kind).options(**self._reading)
        if self._checked:
            reader = reader.options(mode="DROPMALFORMED", inferSchema="true")
        schema = reader.load(self.pattern).schema
        if not schema.fields:
            raise Fault("the files have no row to take a schema from: give --schema")
        return schema

    def stream(self, spark: SparkSession, schema: StructType, most: Mapping[str, int]) -> DataFrame:
        """Its rows, with MALFORMED and `_metadata`. `most` are the options that make a batch small."""
        reader = spark.readStream.format(self.kind).options(**self._reading, **most)
        # Spark would leave out a file that is a week older than another one: one that was moved here, or unpacked.
        reader = reader.option("maxFileAge", "36500d")
        if not self._checked:
            rows = reader.schema(schema).load(self.pattern)
            return rows.select("*", f.lit(None).cast("string").alias(MALFORMED), "_metadata")
        reader = reader.options(mode="PERMISSIVE", columnNameOfCorruptRecord=MALFORMED)
        return reader.schema(wider(schema)).load(self.pattern).select("*", "_metadata")

    @property
    def _checked(self) -> bool:
        """Whether Spark tells which rows of such files are malformed."""
        return self.kind in ("json", "csv")

    @property
    def _reading(self) -> dict[str, str]:
        options = {"recursiveFileLookup": "true"}
        if self.names is not None:
            options["pathGlobFilter"] = self.names
        if self.kind == "csv":
            # Names are compared with the schema: without that, columns in another order would be taken for each other.
            options |= {"header": "true", "enforceSchema": "false"}
        return options | dict(self.options)
