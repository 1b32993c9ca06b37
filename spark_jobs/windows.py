"""A topic of JSON, aggregated in windows of time, to a topic of the results.

    python -m spark_jobs.windows flights delays --schema "origin STRING, dep_delay INT, time_hour TIMESTAMP" \\
        --time time_hour --window "1 day" --by origin --aggregate "avg(dep_delay) AS delay" --checkpoint ./delays
    python -m spark_jobs.windows ... --window "1 day" --slide "6 hours" --aggregate "count(*) AS flights" --follow
    python -m spark_jobs.windows ... --session "30 minutes" --by user --aggregate "count(*) AS clicks" --mode append

Expressions are SQL over the fields of the JSON and over record (record.timestamp, .key, .topic, .partition, .offset,
.headers). A result is {"window_start", "window_end", groups and aggregates by their names}, times in UTC; its key is
the list of its start and its groups, as ["2013-01-01T05:00:00Z","JFK"], so that the last value of a key is its result.
A topic that is missing is created. Windows of days begin at midnight UTC.

Records may come late, by up to --watermark behind the latest time of the batches before; what belongs to a window that
was over by then is left out. Modes:
  update    each window that a batch changed, with what it is now;
  append    each window once, when it is over; the last ones wait in the checkpoint for records that are later;
  complete  all windows there have ever been, with every batch; nothing is too late, and nothing is ever forgotten.
A session ends when nothing came for that long. It is written in mode append only, and by at least one group: until
it is over, a late record may change its start, which is in its key.

Records that are no JSON of the schema, or have no time, are left out and counted.

Started again with the same checkpoint, it goes on where it was: each record counts exactly once. At least once for
the results: a batch that was under way at a crash writes them again, the same ones.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import Row

from spark_jobs import progress
from spark_jobs.columns import MALFORMED, quoted, schema_of, wider
from spark_jobs.command_line import Run, batch_size, checkpoint, follow, job
from spark_jobs.faults import Fault

TIME = "_time"
"""The column with the time of an event."""


@job("windows", __doc__)
@click.argument("source")
@click.argument("target")
@click.option("--schema", required=True, metavar="DDL", help="Fields of the JSON, as 'origin STRING, dep_delay INT'.")
@click.option("--time", default="record.timestamp", metavar="SQL", help="When it happened, as a TIMESTAMP.")
@click.option("--window", "length", metavar="DURATION", help="The length of a window, as '1 hour'.")
@click.option(
    "--slide", metavar="DURATION", help="From the start of a window to that of the next; its length if not given."
)
@click.option("--session", "gap", metavar="DURATION", help="Windows that end when nothing came for so long.")
@click.option("--where", metavar="SQL", help="Only records for which this is true.")
@click.option("--by", multiple=True, metavar="SQL", help="Also grouped by this; may be repeated.")
@click.option(
    "--aggregate",
    "aggregates",
    multiple=True,
    required=True,
    metavar="SQL",
    help="As 'avg(delay) AS delay'; may be repeated.",
)
@click.option("--watermark", default="10 minutes", metavar="DURATION", help="How late records may come.")
@click.option(
    "--mode", type=click.Choice(["append", "update", "complete"]), default="update", help="What is written when."
)
@click.option("--partitions", type=click.IntRange(min=1), default=1, metavar="N", help="Of a topic that is created.")
@batch_size
@checkpoint
@follow
def main(
    run: Run,
    source: str,
    target: str,
    schema: str,
    time: str,
    length: str | None,
    slide: str | None,
    gap: str | None,
    where: str | None,
    by: tuple[str, ...],
    aggregates: tuple[str, ...],
    watermark: str,
    mode: str,
    partitions: int,
    max_offsets_per_trigger: int | None,
    checkpoint: Path,
    follow: bool,
) -> None:
    if (length is None) == (gap is None):
        raise click.UsageError("either --window or --session")
    if slide is not None and length is None:
        raise click.UsageError("--slide goes with --window")
    if gap is not None and (mode != "append" or not by):
        raise click.UsageError("--session needs --mode append and --by")
    if source == target:
        raise Fault(f"{source} would be aggregated into itself")
    run.cluster.demand(run.spark, source)
    options = {"maxOffsetsPerTrigger": max_offsets_per_trigger} if max_offsets_per_trigger else {}
    events = events_of(run.cluster.stream(run.spark, source, **options), schema, time)
    events = events.observe(
        Count.METRIC,
        f.count(f.lit(1)).alias("all"),
        f.count(MALFORMED).alias("malformed"),
        f.count_if(f.col(MALFORMED).isNull() & f.col(TIME).isNull()).alias("timeless"),
    )
    events = events.where(f.col(MALFORMED).isNull() & f.col(TIME).isNotNull())
    if where is not None:
        events = events.where(where)
    window = f.session_window(TIME, gap) if gap is not None else f.window(TIME, str(length), slide)
    grouped = events.withWatermark(TIME, watermark).groupBy(window, *map(f.expr, by))
    results = results_of(grouped.agg(*map(f.expr, aggregates)), len(by))
    run.cluster.provide(run.spark, target, partitions, {})
    writer = results.writeStream.format("kafka").outputMode(mode).options(**run.cluster.options, topic=target)
    count = Count()
    with ExitStack() as stack:
        stack.callback(lambda: print(f"windows: {count.told()}"))
        for batch in progress.batches(run.start(writer, checkpoint, follow=follow)):
            count.add(batch.observedMetrics)


def events_of(records: DataFrame, schema: str, time: str) -> DataFrame:
    """The fields of these records, with record, TIME and MALFORMED."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    fields = f.from_json(f.col("value").cast("string"), wider(schema_of(schema)), options)
    record = f.struct("key", "timestamp", "topic", "partition", "offset", "headers")
    events = records.select(record.alias("record"), fields.alias("fields")).select("record", "fields.*")
    return events.withColumn(TIME, f.expr(time).try_cast("timestamp"))


def results_of(windows: DataFrame, groups: int) -> DataFrame:
    """Records, of rows that are a window, groups and aggregates."""
    window, *names = windows.columns
    start, end = (in_utc(f.col(f"{window}.{side}")) for side in ("start", "end"))
    key = f.array(start, *(quoted(name).cast("string") for name in names[:groups]))
    value = f.struct(start.alias("window_start"), end.alias("window_end"), *map(quoted, names))
    return windows.select(
        f.to_json(key).cast("binary").alias("key"),
        f.to_json(value, {"ignoreNullFields": "false"}).cast("binary").alias("value"),
    )


def in_utc(time: Column) -> Column:
    """As 2013-01-01T05:00:00Z, with a fraction of a second where there is one."""
    shown = f.to_utc_timestamp(time, f.current_timezone()).cast("string")
    return f.concat(f.replace(shown, f.lit(" "), f.lit("T")), f.lit("Z"))


@dataclass
class Count:
    """Of the records of all batches so far."""

    METRIC = "records"
    all: int = 0
    malformed: int = 0
    timeless: int = 0

    def add(self, metrics: Mapping[str, Row]) -> None:
        if self.METRIC in metrics:
            found = metrics[self.METRIC]
            self.all += found["all"]
            self.malformed += found["malformed"]
            self.timeless += found["timeless"]

    def told(self) -> str:
        sentence = f"{self.all:,} records read"
        if self.malformed:
            sentence += f", {self.malformed:,} left out that are no JSON of the schema"
        if self.timeless:
            sentence += f", {self.timeless:,} left out that have no time"
        return sentence


if __name__ == "__main__":
    main()
