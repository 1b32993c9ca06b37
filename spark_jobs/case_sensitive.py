"""Names that differ by case only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_SETTING = "spark.sql.caseSensitive"


@contextmanager
def case_sensitive(spark: SparkSession) -> Iterator[None]:
    """Spark tells a from A, as it does not by default; queries have to be started in that time."""
    before = spark.conf.get(_SETTING)
    spark.conf.set(_SETTING, "true")
    try:
        yield
    finally:
        spark.conf.set(_SETTING, str(before))
