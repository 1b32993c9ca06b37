"""Copies a topic without the records that came before, by an id of theirs.

    python -m spark_jobs.enrich distinct flights flights-once --id carrier --id flight --id time --time time \\
        --schema "carrier STRING, flight INT, time TIMESTAMP" --watermark "2 days" --checkpoint ./once
    python -m spark_jobs.enrich distinct orders orders-once --id record.key --watermark "1 hour" --checkpoint ./once

Keys, values and headers are copied as they are. Of records with one id whose times are up to --watermark apart, one is
copied: the first, or any where a batch holds several; one whose id is null, in all its parts, has none, and is copied.
An id is forgotten when the latest time seen is past its first record by twice as much, so --watermark bounds what is
kept. Records that lie further than --watermark behind the latest
time may be left out, whether they came before or not; those without a time are.

At least once: a batch that was under way at a crash is written again. Which ids have come is kept in the checkpoint.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click
from pyspark.sql import functions as f

from spark_jobs.command_line import Run, checkpoint, follow, job, reads
from spark_jobs.enriching.options import watermark
from spark_jobs.enriching.streams import sources, timed
from spark_jobs.events import RECORD, events, malformed, whole
from spark_jobs.topics import Reading


@job("enrich distinct", __doc__)
@click.argument("source")
@click.argument("target")
@click.option(
    "--id", "ids", required=True, multiple=True, metavar="SQL", help="The id, or a part of it; may be repeated."
)
@click.option("--time", default="record.timestamp", metavar="SQL", help="The time of a record.")
@watermark
@click.option("--schema", metavar="DDL", help="Of the values, where expressions speak of their fields.")
@malformed
@reads
@checkpoint
@follow
def main(
    run: Run,
    source: str,
    target: str,
    ids: tuple[str, ...],
    time: str,
    watermark: timedelta,
    schema: str | None,
    malformed: str,
    reading: Reading,
    checkpoint: Path,
    follow: bool,
) -> None:
    partitions = sources(run, target, source)
    records = run.cluster.stream(run.spark, source, reading)
    given = events(records, schema, malformed) if schema is not None else whole(records)
    parts = {f"_id{number}": f.expr(part) for number, part in enumerate(ids)}
    # A record without an id has its own place for one.
    place = f.concat_ws(":", f"{RECORD}.partition", f"{RECORD}.offset")
    parts["_place"] = f.when(f.coalesce(*(part.cast("string") for part in parts.values())).isNull(), place)
    found = timed(given.withColumns(parts), "_time", time, watermark).dropDuplicatesWithinWatermark(list(parts))
    run.cluster.provide(run.spark, target, partitions, {})
    output = found.select(f"{RECORD}.key", f"{RECORD}.value", f"{RECORD}.headers")
    writer = run.cluster.sink(output, target)
    meaning = {"target": target, "--id": ids}
    run.start(writer, checkpoint, follow=follow, topics=[source], **meaning).awaitTermination()
