"""Puts to each record those of another stream that lie near it in time.

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

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click
from pyspark.sql import functions as f

from spark_jobs.columns import quoted
from spark_jobs.command_line import Run, checkpoint, follow, job, reads
from spark_jobs.durations import Duration
from spark_jobs.enriching.options import inner, schema, select, watermark
from spark_jobs.enriching.streams import fields, kind, outgoing, sources, timed
from spark_jobs.events import events, malformed
from spark_jobs.faults import Fault
from spark_jobs.topics import Reading


@job("enrich stream", __doc__)
@click.argument("source")
@click.argument("target")
@click.option("--with", "other", required=True, metavar="TOPIC", help="The other stream.")
@click.option("--on", required=True, metavar="SQL", help="What is true of a match; an equality must be among it.")
@click.option("--as", "name", metavar="NAME", help="The name of the new field.  [default: that of the other topic]")
@schema
@click.option("--with-schema", required=True, metavar="DDL", help="Of the other's values.")
@click.option("--time", required=True, metavar="SQL", help="The time of a record.")
@click.option("--with-time", required=True, metavar="SQL", help="The time of the other's record.")
@click.option("--from", "begin", type=Duration(signed=True), default="0 seconds", help="The earliest time of a match.")
@click.option("--to", "end", type=Duration(signed=True), default="0 seconds", help="The latest time of a match.")
@watermark
@click.option("--with-watermark", type=Duration(), help="For the other stream, where it is another one.")
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
    reading: Reading,
    checkpoint: Path,
    follow: bool,
) -> None:
    if begin > end:
        raise Fault("nothing can match: --from is later than --to")
    partitions = sources(run, target, source, other)
    asked = events(run.cluster.stream(run.spark, source, reading), schema, malformed)
    others = events(run.cluster.stream(run.spark, other, reading), with_schema, malformed)
    name = name or other
    left = timed(asked, "_time", time, watermark)
    right = others.select(f.struct(*map(quoted, fields(others))).alias(name))
    right = timed(right, "_other_time", with_time, with_watermark or watermark)
    near = f.col("_other_time").between(f.col("_time") + f.lit(begin), f.col("_time") + f.lit(end))
    joined = left.join(right, f.expr(on) & near, kind(inner))
    output = joined.select(*outgoing(select or [*fields(asked), name]))
    run.cluster.provide(run.spark, target, partitions, {})
    writer = run.cluster.sink(output, target)
    meaning = {"target": target, "--on": on, "--from": begin, "--to": end}
    run.start(writer, checkpoint, follow=follow, topics=[source, other], **meaning).awaitTermination()
