"""A topic of JSON, aggregated in windows of time, to a topic of the results.

    python -m spark_jobs.windows flights departures --schema "time_hour TIMESTAMP, origin STRING" --time time_hour \\
        --window "1 day" --by origin --checkpoint ./departures
    python -m spark_jobs.windows flights delays --schema "time_hour TIMESTAMP, dep_delay INT" --time time_hour \\
        --window "1 day" --slide "6 hours" --aggregate "avg(dep_delay) AS delay" --checkpoint ./delays --follow
    python -m spark_jobs.windows clicks visits --schema "user STRING, at TIMESTAMP" --time at \\
        --session "30 minutes" --by user --aggregate "count(*) AS clicks" --checkpoint ./visits

Expressions are SQL over the fields of the JSON and over record (record.timestamp, .key, .value, .topic, .partition,
.offset, .headers). A result is {"window_start", "window_end", groups and aggregates by their names}, times in UTC; its
key is {"window_start", groups}, so that the last value of a key is its result. A topic that is missing is created.
Windows have a start, which belongs to them, and an end, which does not; those of days begin at midnight UTC.

Records may come late, by up to --watermark behind the latest time of the batches before; what belongs to a window that
was over by then is left out, and told of. Modes:
  update    each window that a batch changed, with what it is now;
  append    each window once, when it is over; the last ones wait in the checkpoint for records that are later;
  complete  all windows there have ever been, with every batch; nothing is too late, and nothing is ever forgotten.

A session ends when nothing came for longer than --session: that long after its last record, and a record which comes
exactly then still belongs to it. Sessions are by at least one group, and are written when they are over (append),
since until then a record that comes late may give them another start, which is in their key.

Records that are no JSON of the schema, or have no time, are left out and counted.

Started again with the same checkpoint, it goes on where it was: each record counts exactly once. Other windows, groups
or aggregates need another checkpoint. At least once for the results: a batch that was under way at a crash writes
them again, the same ones.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.listener import StreamingQueryProgress

from spark_jobs import progress
from spark_jobs.columns import MALFORMED, quoted, schema_of, wider
from spark_jobs.command_line import Run, checkpoint, follow, job, reads
from spark_jobs.durations import Duration, words
from spark_jobs.events import RECORD, json_of, whole
from spark_jobs.faults import Fault
from spark_jobs.single_json import single
from spark_jobs.topics import Reading

TIME = "_time"
"""The column with the time of a record, as the user has it."""
WINDOW = "_window"
WELL = "_well"
"""The column that says whether a record is JSON of the schema."""


@job("windows", __doc__)
@click.argument("source")
@click.argument("target")
@click.option("--schema", required=True, metavar="DDL", help="Fields of the JSON, as 'origin STRING, dep_delay INT'.")
@click.option("--time", default="record.timestamp", metavar="SQL", help="When it happened, as a TIMESTAMP.")
@click.option("--window", "length", type=Duration(), help="The length of a window, as '1 hour'.")
@click.option(
    "--slide", type=Duration(), help="From the start of a window to that of the next; its length unless given."
)
@click.option("--session", "gap", type=Duration(), help="Windows that end when nothing came for longer than that.")
@click.option("--where", metavar="SQL", help="Only records for which this is true.")
@click.option("--by", multiple=True, metavar="SQL", help="Also grouped by this; may be repeated.")
@click.option(
    "--aggregate",
    "aggregates",
    multiple=True,
    default=["count(*) AS count"],
    metavar="SQL",
    help="As 'avg(delay) AS delay'; may be repeated.",
)
@click.option("--watermark", type=Duration(), default="10 minutes", help="How late records may come.")
@click.option(
    "--mode",
    type=click.Choice(["append", "update", "complete"]),
    help="What is written when.  [default: update; append for sessions]",
)
@click.option("--partitions", type=click.IntRange(min=1), default=1, metavar="N", help="Of a topic that is created.")
@reads
@checkpoint
@follow
def main(
    run: Run,
    source: str,
    target: str,
    schema: str,
    time: str,
    length: timedelta | None,
    slide: timedelta | None,
    gap: timedelta | None,
    where: str | None,
    by: tuple[str, ...],
    aggregates: tuple[str, ...],
    watermark: timedelta,
    mode: str | None,
    partitions: int,
    reading: Reading,
    checkpoint: Path,
    follow: bool,
) -> None:
    if (length is None) == (gap is None):
        raise click.UsageError("either --window or --session")
    if timedelta() in (length, gap):
        raise click.UsageError("a window must have a length")
    if slide is not None and length is None:
        raise click.UsageError("--slide goes with --window")
    if gap is not None and (mode not in (None, "append") or not by):
        raise click.UsageError("--session needs --by, and no --mode but append")
    if source == target:
        raise Fault(f"{source} would be aggregated into itself")
    mode = mode or ("append" if gap is not None else "update")
    run.cluster.demand(run.spark, source)
    events = events_of(run.cluster.stream(run.spark, source, reading), schema, time)
    if where is not None:
        events = events.where(where)
    events = events.withWatermark(TIME, words(watermark))
    grouped = events.groupBy(windows_of(length, slide, gap).alias(WINDOW), *map(f.expr, by))
    results = results_of(grouped.agg(*map(f.expr, aggregates)), len(by))
    run.cluster.provide(run.spark, target, partitions, {})
    writer = run.cluster.sink(results, target).outputMode(mode)
    meaning = {"target": target, "--window": length, "--slide": slide, "--session": gap, "--mode": mode}
    meaning |= {"--time": time, "--by": by, "--aggregate": aggregates}
    count = Count()
    with ExitStack() as stack:
        stack.callback(lambda: print(f"windows: {count.told(target, mode)}"))
        query = run.start(writer, checkpoint, follow=follow, topics=[source], **meaning)
        for batch in progress.batches(query):
            count.add(batch)


def events_of(records: DataFrame, schema: str, time: str) -> DataFrame:
    """The fields of these records, with record and TIME; without those that are malformed or have no time, which are
    counted."""
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    fields = f.from_json(single(f.col(f"{RECORD}.value").cast("string")), wider(schema_of(schema)), options)
    events = whole(records).withColumn("fields", fields)
    well = f.col("fields").isNotNull() & f.col(f"fields.{MALFORMED}").isNull()
    events = events.select(RECORD, well.alias(WELL), "fields.*").withColumn(TIME, f.expr(time).try_cast("timestamp"))
    counted = events.observe(
        Count.METRIC,
        f.count(f.lit(1)).alias("all"),
        f.count_if(~f.col(WELL)).alias("malformed"),
        f.count_if(f.col(WELL) & f.col(TIME).isNull()).alias("timeless"),
    )
    return counted.where(f.col(WELL) & f.col(TIME).isNotNull())


def windows_of(length: timedelta | None, slide: timedelta | None, gap: timedelta | None) -> Column:
    """Sessions where a gap is given."""
    if gap is not None:
        return f.session_window(TIME, words(gap))
    return f.window(TIME, words(length or timedelta()), words(slide) if slide is not None else None)


def results_of(windows: DataFrame, groups: int) -> DataFrame:
    """Records, of rows that are WINDOW, so many groups, and aggregates. Raises Fault where two have the same name."""
    sides = {f"window_{side}": f.col(f"{WINDOW}.{side}") for side in ("start", "end")}
    names = windows.columns[1:]
    for name, count in Counter([*sides, *names]).items():
        if count > 1:
            raise Fault(f"two columns are named {name}: give one of them another name by AS")
    start, end = (column.alias(name) for name, column in sides.items())
    rest = [quoted(name) for name in names]
    key, value = json_of([start, *rest[:groups]]), json_of([start, end, *rest])
    return windows.select(key.cast("binary").alias("key"), value.cast("binary").alias("value"))


@dataclass
class Count:
    """Of what all batches so far did."""

    METRIC = "records"
    all: int = 0
    malformed: int = 0
    timeless: int = 0
    late: int = 0
    """Each window and group that a batch was too late for, in each of Spark's tasks."""
    written: int = 0
    kept: int = 0
    """Windows that are not over."""

    def add(self, batch: StreamingQueryProgress) -> None:
        found = batch.observedMetrics.get(self.METRIC)
        if found is not None:
            self.all += found["all"]
            self.malformed += found["malformed"]
            self.timeless += found["timeless"]
        # A batch that wrote nothing says -1.
        self.written += max(0, batch.sink.numOutputRows)
        for state in batch.stateOperators:
            self.late += state.numRowsDroppedByWatermark
            self.kept = state.numRowsTotal

    def told(self, target: str, mode: str) -> str:
        sentence = f"{self.all:,} records read, {self.written:,} results written to {target}"
        if self.malformed:
            sentence += f", {self.malformed:,} records left out that are no JSON of the schema"
        if self.timeless:
            sentence += f", {self.timeless:,} records left out that have no time"
        if self.late:
            sentence += f", some records left out that were too late (for {self.late:,} results)"
        if mode == "append" and self.kept:
            sentence += f", {self.kept:,} windows are not over"
        return sentence


if __name__ == "__main__":
    main()
