"""Puts to the records of a topic what other topics know, and leaves out those that came before.

    python -m spark_jobs.enrich table flights flights-with-planes --table planes --on tailnum --as plane \\
        --schema "tailnum STRING, origin STRING, dest STRING" --table-schema "model STRING, seats INT" \\
        --checkpoint ./planes
    python -m spark_jobs.enrich stream flights flights-with-weather --with weather --on "origin = weather.origin" \\
        --schema "origin STRING, flight INT, time TIMESTAMP" --time time \\
        --with-schema "origin STRING, hour TIMESTAMP, temp DOUBLE" --with-time weather.hour \\
        --from "-59 minutes" --to "0 minutes" --watermark "1 day" --checkpoint ./weather
    python -m spark_jobs.enrich distinct flights flights-once --id carrier --id flight --id time --time time \\
        --schema "carrier STRING, flight INT, time TIMESTAMP" --watermark "2 days" --checkpoint ./once

Values are JSON, taken apart by a schema in SQL's words; records without a value are left out. Expressions are SQL over
the fields of the value and over `record`, a struct of the record's own key and value (both binary), headers, topic,
partition, offset and timestamp. Targets that are missing are created. `enrich COMMAND --help` says more.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType

from spark_jobs.command_line import (
    Run,
    allow_data_loss,
    batch_size,
    checkpoint,
    committed_only,
    follow,
    job,
    paragraphs,
)
from spark_jobs.durations import Duration, words
from spark_jobs.events import RECORD, events, json_of, malformed, taken_apart, whole
from spark_jobs.faults import Fault
from spark_jobs.latest import SCHEMA, LatestValues
from spark_jobs.topics import reading

_schema = click.option("--schema", required=True, metavar="DDL", help="Of the source's values: 'id INT, name STRING'.")
_select = click.option(
    "--select",
    metavar="SQL",
    help="What the value of the target holds: a list as after SELECT.  [default: all fields, and what was put to them]",
)
_inner = click.option("--inner", is_flag=True, help="Leave out what has no match.")
_watermark = click.option(
    "--watermark",
    type=Duration(),
    required=True,
    help="How far a record may lie behind the latest time seen; one that comes later than that may be left out.",
)

_ROW = ("_key", "_value")
"""Of the table: its fields stand beside them."""

TABLE = """Puts to each record the row of a table: the latest value of a key in a compacted topic.

    python -m spark_jobs.enrich table flights flights-with-planes --table planes --on tailnum --as plane \\
        --schema "tailnum STRING, origin STRING" --table-schema "model STRING, seats INT" --checkpoint ./planes

The target's values are those of the source with one field more, an object with the fields of the row, or null where
the table has none. Keys and headers stay; so does the order of each partition. Records whose value is null (tombstones)
delete a row. The table is kept in the checkpoint and brought up to date at the beginning of each batch. All records of
a key in the table's topic are taken to be in one partition, as they are where the key chooses it.

At least once: a batch that was under way at a crash is written again, with the rows that it saw the first time. A job
that was down for longer than `delete.retention.ms` of the table's topic may not see what was deleted meanwhile: then
remove `table` in the checkpoint, and it is read from the topic's beginning.
"""


@job("enrich table", TABLE)
@click.argument("source")
@click.argument("target")
@click.option("--table", required=True, metavar="TOPIC", help="The topic that is the table.")
@click.option("--on", default="record.key", metavar="SQL", help="The key in the table; text unless it is binary.")
@click.option("--as", "name", metavar="NAME", help="The name of the new field.  [default: that of the table's topic]")
@_schema
@click.option("--table-schema", required=True, metavar="DDL", help="Of the table's values.")
@_select
@_inner
@malformed
@batch_size
@committed_only
@allow_data_loss
@checkpoint
@follow
def table(
    run: Run,
    source: str,
    target: str,
    table: str,
    on: str,
    name: str | None,
    schema: str,
    table_schema: str,
    select: str | None,
    inner: bool,
    malformed: str,
    max_offsets_per_trigger: int | None,
    committed_only: bool,
    allow_data_loss: bool,
    checkpoint: Path,
    follow: bool,
) -> None:
    partitions = sources(run, target, source, table)
    latest = LatestValues(run.cluster, table, checkpoint / "table", committed_only=committed_only)

    def enriched(records: DataFrame, rows: DataFrame) -> DataFrame:
        asked = events(records, schema, malformed)
        known = taken_apart(rows.toDF(*_ROW), _ROW[1], table_schema, malformed)
        return with_row(asked, known, on, name or table, select, inner=inner)

    def write(records: DataFrame, batch: int) -> None:
        output = enriched(records, latest.as_of(records.sparkSession, batch))
        output.write.format("kafka").options(**run.cluster.options, topic=target).save()

    options = reading(max_offsets_per_trigger, committed_only=committed_only, allow_data_loss=allow_data_loss)
    records = run.cluster.stream(run.spark, source, **options)
    enriched(records, run.spark.createDataFrame([], SCHEMA))  # finds what is wrong with an expression
    run.cluster.provide(run.spark, target, partitions, {})
    run.start(records.writeStream.foreachBatch(write), checkpoint, follow=follow).awaitTermination()


def with_row(asked: DataFrame, table: DataFrame, on: str, name: str, select: str | None, *, inner: bool) -> DataFrame:
    """Key, value and headers of what is to be written, each partition in its order."""
    row = table.select(_ROW[0], f.struct(*(each for each in table.columns if each not in _ROW)).alias(name))
    joined = asked.withColumn("_on", _bytes(asked, on)).join(row, f.col("_on") == f.col(_ROW[0]), _kind(inner))
    if not joined.isStreaming:
        # A join may deal rows out anew.
        place = [f"{RECORD}.partition", f"{RECORD}.offset"]
        joined = joined.repartition(place[0]).sortWithinPartitions(*place)
    return joined.select(*_output(select or [*_fields(asked), name]))


STREAM = """Puts to each record those of another stream that lie near it in time.

    python -m spark_jobs.enrich stream flights flights-with-weather --with weather --on "origin = weather.origin" \\
        --schema "origin STRING, flight INT, time TIMESTAMP" --time time \\
        --with-schema "origin STRING, hour TIMESTAMP, temp DOUBLE" --with-time weather.hour \\
        --from "-59 minutes" --to "0 minutes" --watermark "1 day" --checkpoint ./weather

The other's time lies between --from and --to, both included, counted from that of the record. The target's values are
those of the source with one field more, an object with the fields of the other record; a record for which there are
several comes several times. One for which there is none comes with null, as soon as both streams are so far, by
--watermark, that there cannot be one any more: at the earliest with the first later records of both. Keys and headers
stay. The order does not.

At least once: a batch that was under way at a crash is written again, with the same matches. What waits for a match is
kept in the checkpoint.
"""


@job("enrich stream", STREAM)
@click.argument("source")
@click.argument("target")
@click.option("--with", "other", required=True, metavar="TOPIC", help="The other stream.")
@click.option("--on", required=True, metavar="SQL", help="What is true of a match; an equality must be among it.")
@click.option("--as", "name", metavar="NAME", help="The name of the new field.  [default: that of the other topic]")
@_schema
@click.option("--with-schema", required=True, metavar="DDL", help="Of the other's values.")
@click.option("--time", required=True, metavar="SQL", help="The time of a record.")
@click.option("--with-time", required=True, metavar="SQL", help="The time of the other's record.")
@click.option("--from", "begin", type=Duration(signed=True), default="0 seconds", help="The earliest time of a match.")
@click.option("--to", "end", type=Duration(signed=True), default="0 seconds", help="The latest time of a match.")
@_watermark
@click.option("--with-watermark", type=Duration(), help="For the other stream, where it is another one.")
@_select
@_inner
@malformed
@batch_size
@committed_only
@allow_data_loss
@checkpoint
@follow
def stream(
    run: Run,
    source: str,
    target: str,
    other: str,
    on: str,
    name: str | None,
    schema: str,
    with_schema: str,
    time: str,
    with_time: str,
    begin: timedelta,
    end: timedelta,
    watermark: timedelta,
    with_watermark: timedelta | None,
    select: str | None,
    inner: bool,
    malformed: str,
    max_offsets_per_trigger: int | None,
    committed_only: bool,
    allow_data_loss: bool,
    checkpoint: Path,
    follow: bool,
) -> None:
    partitions = sources(run, target, source, other)
    options = reading(max_offsets_per_trigger, committed_only=committed_only, allow_data_loss=allow_data_loss)
    asked = events(run.cluster.stream(run.spark, source, **options), schema, malformed)
    others = events(run.cluster.stream(run.spark, other, **options), with_schema, malformed)
    name = name or other
    left = timed(asked, "_time", time, watermark)
    right = others.select(f.struct(*_fields(others)).alias(name))
    right = timed(right, "_other_time", with_time, with_watermark or watermark)
    near = f.col("_other_time").between(f.col("_time") + f.lit(begin), f.col("_time") + f.lit(end))
    joined = left.join(right, f.expr(on) & near, _kind(inner))
    output = joined.select(*_output(select or [*_fields(asked), name]))
    run.cluster.provide(run.spark, target, partitions, {})
    writer = output.writeStream.format("kafka").options(**run.cluster.options, topic=target)
    run.start(writer, checkpoint, follow=follow).awaitTermination()


DISTINCT = """Copies a topic without the records that came before, by an id of theirs.

    python -m spark_jobs.enrich distinct flights flights-once --id carrier --id flight --id time --time time \\
        --schema "carrier STRING, flight INT, time TIMESTAMP" --watermark "2 days" --checkpoint ./once
    python -m spark_jobs.enrich distinct orders orders-once --id record.key --watermark "1 hour" --checkpoint ./once

Keys, values and headers are copied as they are. Of records with one id whose times are up to --watermark apart, one is
copied: the first, or any where a batch holds several. An id is forgotten when the latest time seen is past its first
record by twice as much, so --watermark bounds what is kept. Records that lie further than --watermark behind the latest
time may be left out, whether they came before or not; those without a time are.

At least once: a batch that was under way at a crash is written again. Which ids have come is kept in the checkpoint.
"""


@job("enrich distinct", DISTINCT)
@click.argument("source")
@click.argument("target")
@click.option(
    "--id", "ids", required=True, multiple=True, metavar="SQL", help="The id, or a part of it; may be repeated."
)
@click.option("--time", default="record.timestamp", metavar="SQL", help="The time of a record.")
@_watermark
@click.option("--schema", metavar="DDL", help="Of the values, where expressions speak of their fields.")
@malformed
@batch_size
@committed_only
@allow_data_loss
@checkpoint
@follow
def distinct(
    run: Run,
    source: str,
    target: str,
    ids: tuple[str, ...],
    time: str,
    watermark: timedelta,
    schema: str | None,
    malformed: str,
    max_offsets_per_trigger: int | None,
    committed_only: bool,
    allow_data_loss: bool,
    checkpoint: Path,
    follow: bool,
) -> None:
    partitions = sources(run, target, source)
    options = reading(max_offsets_per_trigger, committed_only=committed_only, allow_data_loss=allow_data_loss)
    records = run.cluster.stream(run.spark, source, **options)
    given = events(records, schema, malformed) if schema is not None else whole(records)
    parts = {f"_id{number}": f.expr(part) for number, part in enumerate(ids)}
    found = timed(given.withColumns(parts), "_time", time, watermark).dropDuplicatesWithinWatermark(list(parts))
    run.cluster.provide(run.spark, target, partitions, {})
    output = found.select(f"{RECORD}.key", f"{RECORD}.value", f"{RECORD}.headers")
    writer = output.writeStream.format("kafka").options(**run.cluster.options, topic=target)
    run.start(writer, checkpoint, follow=follow).awaitTermination()


def sources(run: Run, target: str, *topics: str) -> int:
    """How many partitions the first of these topics has; raises Fault where one is missing, or is the target too."""
    if target in topics:
        raise Fault(f"{target} would be read and written")
    return run.cluster.demand(run.spark, *topics)[topics[0]]


def timed(rows: DataFrame, name: str, time: str, watermark: timedelta) -> DataFrame:
    """With a column more: the time of each, by which the query's watermark moves. Those without a time are left out."""
    found = rows.withColumn(name, f.expr(time).cast("timestamp")).where(f.col(name).isNotNull())
    return found.withWatermark(name, words(watermark))


def _fields(given: DataFrame) -> list[str]:
    return [name for name in given.columns if name != RECORD]


def _output(columns: list[str] | str) -> tuple[Column, ...]:
    """What is to be written: the key and the headers of the record, and this."""
    return f.col(f"{RECORD}.key"), json_of(columns).alias("value"), f.col(f"{RECORD}.headers")


def _kind(inner: bool) -> str:
    return "inner" if inner else "left"


def _bytes(rows: DataFrame, expression: str) -> Column:
    """As a key holds it: text, unless it is binary already."""
    column = f.expr(expression)
    kind = rows.select(column).schema[0].dataType
    return column if isinstance(kind, BinaryType) else column.cast("string").cast("binary")


@click.group("enrich", help=paragraphs(__doc__), context_settings={"max_content_width": 120})
def main() -> None:
    pass


for command, name in ((table, "table"), (stream, "stream"), (distinct, "distinct")):
    main.add_command(command, name)

if __name__ == "__main__":
    main()
