"""Puts to each record the row of a table: the latest value of a key in a compacted topic.

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

from __future__ import annotations

from pathlib import Path

import click
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.columns import quoted
from spark_jobs.command_line import Run, checkpoint, follow, job, reads
from spark_jobs.enriching.latest import SCHEMA, LatestValues
from spark_jobs.enriching.options import inner, schema, select
from spark_jobs.enriching.streams import fields, kind, outgoing, sources
from spark_jobs.events import RECORD, events, malformed, taken_apart
from spark_jobs.records import as_bytes
from spark_jobs.topics import Reading

_ROW = ("_key", "_value")
"""Of the table: its fields stand beside them."""


@job("enrich table", __doc__)
@click.argument("source")
@click.argument("target")
@click.option("--table", required=True, metavar="TOPIC", help="The topic that is the table.")
@click.option("--on", default="record.key", metavar="SQL", help="The key in the table; text unless it is binary.")
@click.option("--as", "name", metavar="NAME", help="The name of the new field.  [default: that of the table's topic]")
@schema
@click.option("--table-schema", required=True, metavar="DDL", help="Of the table's values.")
@select
@inner
@malformed
@reads
@checkpoint
@follow
def main(
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
    reading: Reading,
    checkpoint: Path,
    follow: bool,
) -> None:
    partitions = sources(run, target, source, table)
    latest = LatestValues(run.cluster, table, checkpoint / "table", reading)

    def enriched(records: DataFrame, rows: DataFrame) -> DataFrame:
        asked = events(records, schema, malformed)
        known = taken_apart(rows.toDF(*_ROW), _ROW[1], table_schema, malformed)
        return with_row(asked, known, on, name or table, select, inner=inner)

    def write(records: DataFrame, batch: int) -> None:
        output = enriched(records, latest.as_of(records.sparkSession, batch))
        output.write.format("kafka").options(**run.cluster.options, topic=target).save()

    records = run.cluster.stream(run.spark, source, reading)
    enriched(records, run.spark.createDataFrame([], SCHEMA))  # finds what is wrong with an expression
    run.cluster.provide(run.spark, target, partitions, {})
    writer = records.writeStream.foreachBatch(write)
    run.start(writer, checkpoint, follow=follow, topics=[source, table], target=target).awaitTermination()


def with_row(asked: DataFrame, table: DataFrame, on: str, name: str, select: str | None, *, inner: bool) -> DataFrame:
    """Key, value and headers of what is to be written, each partition in its order."""
    row = table.select(_ROW[0], f.struct(*(quoted(each) for each in table.columns if each not in _ROW)).alias(name))
    joined = asked.withColumn("_on", as_bytes(on)).join(row, f.col("_on") == f.col(_ROW[0]), kind(inner))
    if not joined.isStreaming:
        # A join may deal rows out anew.
        place = [f"{RECORD}.partition", f"{RECORD}.offset"]
        joined = joined.repartition(place[0]).sortWithinPartitions(*place)
    return joined.select(*outgoing(select or [*fields(asked), name]))
