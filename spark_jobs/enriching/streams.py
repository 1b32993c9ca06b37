"""What goes in and comes out of the commands of `enrich`: topics, times, records."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_jobs.columns import quoted
from spark_jobs.command_line import Run
from spark_jobs.durations import words
from spark_jobs.events import RECORD, json_of
from spark_jobs.faults import Fault


def sources(run: Run, target: str, *topics: str) -> int:
    """How many partitions the first of these topics has; raises Fault where one is missing, or is the target too."""
    if target in topics:
        raise Fault(f"{target} would be read and written")
    return run.cluster.demand(run.spark, *topics)[topics[0]]


def timed(rows: DataFrame, name: str, time: str, watermark: timedelta) -> DataFrame:
    """With a column more: the time of each, by which the query's watermark moves. Those without a time are left out."""
    found = rows.withColumn(name, f.expr(time).cast("timestamp")).where(f.col(name).isNotNull())
    return found.withWatermark(name, words(watermark))


def fields(given: DataFrame) -> list[str]:
    """The columns that are fields of a record's value."""
    return [name for name in given.columns if name != RECORD]


def outgoing(columns: list[str] | str) -> tuple[Column, ...]:
    """What is to be written: the key and the headers of the record, and this."""
    parts = columns if isinstance(columns, str) else [quoted(name) for name in columns]
    return f.col(f"{RECORD}.key"), json_of(parts).alias("value"), f.col(f"{RECORD}.headers")


def kind(inner: bool) -> str:
    """Of a join, in Spark's words."""
    return "inner" if inner else "left"
