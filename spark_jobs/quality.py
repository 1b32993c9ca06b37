"""Passes on those records of a topic whose values keep to a schema; the others go to a dead-letter topic, with why.

    python -m spark_jobs.quality flights flights-good flights-bad --schema flight.schema.json --checkpoint ./quality
    python -m spark_jobs.quality flights flights-good flights-bad --schema flight.avsc --checkpoint ./quality --follow

A schema is a JSON Schema of any draft, or an Avro schema (a file .avsc, or --language avro), of which each value is one
datum in raw binary; --framed for values that begin with the five bytes of a schema registry. Nothing is fetched: what
a JSON Schema refers to is in its file.

Good records keep key, value and headers, and with --same-partitions their partition. Bad ones keep key, value and
headers, and get headers more, by the names that Kafka Connect has for its dead letters, as texts, in place of any that
they have from before:

    __connect.errors.topic, .partition, .offset    where the record was
    __connect.errors.stage                         VALUE_CONVERTER, Connect's word for reading a value
    __connect.errors.exception.class.name          the Python class of the error: json.decoder.JSONDecodeError
    __connect.errors.exception.message             what is wrong, where: $.distance: '719' is not of type 'integer'

Targets that are missing are created, with as many partitions as the source has. Where an Avro value happens to be a
whole datum of the schema, although another one wrote it, nobody can tell.

At least once: a batch that was under way at a crash is written again, by one query to both topics, and each record to
the same topic as before. Topic, partition and offset in the headers tell a dead letter that came twice. The copies
have times of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
import pandas as pd
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from spark_jobs.checks import Schema, load
from spark_jobs.command_line import Run, checkpoint, follow, job, reads
from spark_jobs.faults import Fault
from spark_jobs.records import header
from spark_jobs.topics import Reading

NAMES = "__connect.errors."
HEADERS = "array<struct<key:string,value:binary>>"
COUNTS = "verdicts"
"""Under this name Spark reports how many records of a batch were good, and how many bad."""


@job("quality", __doc__)
@click.argument("source")
@click.argument("good")
@click.argument("bad")
@click.option(
    "--schema",
    "schema_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="What values must be.",
)
@click.option("--language", type=click.Choice(["json", "avro"]), help="Of the schema, where the file's name lies.")
@click.option("--formats", is_flag=True, help="Demand what a JSON Schema says by `format`, such as date-time.")
@click.option("--framed", is_flag=True, help="Values begin with a schema registry's five bytes.")
@click.option("--tombstones", is_flag=True, help="Records without a value are good: deletions in a compacted topic.")
@click.option("--same-partitions", is_flag=True, help="Good records keep their partition; else their key chooses it.")
@reads
@checkpoint
@follow
def main(
    run: Run,
    source: str,
    good: str,
    bad: str,
    schema_file: Path,
    language: str | None,
    formats: bool,
    framed: bool,
    tombstones: bool,
    same_partitions: bool,
    reading: Reading,
    checkpoint: Path,
    follow: bool,
) -> None:
    if len({source, good, bad}) < 3:
        raise Fault("the source, the topic of good records and that of bad ones must be three topics")
    schema = load(schema_file, language, formats=formats, framed=framed, tombstones=tombstones)
    partitions = run.cluster.demand(run.spark, source)[source]
    present = run.cluster.provide(run.spark, good, partitions, {})
    run.cluster.provide(run.spark, bad, partitions, {})
    if same_partitions and present < partitions:
        raise Fault(f"{good} has {present} partitions, {source} has {partitions}: add some, or leave --same-partitions")
    records = sorted_out(
        run.cluster.stream(run.spark, source, reading), schema, good, bad, same_partitions=same_partitions
    )
    writer = run.cluster.sink(records)
    passed, failed = watch(run.start(writer, checkpoint, follow=follow, topics=[source], good=good, bad=bad))
    print(f"{source}: {passed:,} good records to {good}, {failed:,} bad ones to {bad}")


def sorted_out(records: DataFrame, schema: Schema, good: str, bad: str, *, same_partitions: bool) -> DataFrame:
    """What is to be written of these records, and to which topic."""
    judged = records.withColumn("verdict", _verdicts(schema)("value"))
    is_bad = f.col("verdict.message").isNotNull()
    judged = judged.observe(COUNTS, f.count_if(~is_bad).alias("good"), f.count_if(is_bad).alias("bad"))
    columns = [
        f.when(is_bad, bad).otherwise(good).alias("topic"),
        "key",
        "value",
        f.when(is_bad, _dead_letter_headers()).otherwise(f.col("headers")).alias("headers"),
    ]
    if same_partitions:
        columns.append(f.when(~is_bad, f.col("partition")).alias("partition"))
    return judged.select(*columns)


def _verdicts(schema: Schema) -> Callable[[str], Column]:
    """A function of Spark from values to what is wrong with them: nulls where nothing is."""

    @f.pandas_udf("kind string, message string")
    def verdicts(batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        check = schema.check()
        for values in batches:
            yield pd.DataFrame([check(value) or (None, None) for value in values], columns=["kind", "message"])

    return verdicts


def _dead_letter_headers() -> Column:
    """Those of the record, without what an earlier run may have said of it, and where it was and what is wrong."""
    said = {
        "topic": f.col("topic"),
        "partition": f.col("partition"),
        "offset": f.col("offset"),
        "stage": f.lit("VALUE_CONVERTER"),
        "exception.class.name": f.col("verdict.kind"),
        "exception.message": f.col("verdict.message"),
    }
    added = [header(NAMES + name, value.cast("string")) for name, value in said.items()]
    own = f.filter(f.coalesce("headers", f.array().cast(HEADERS)), lambda each: ~each.key.startswith(NAMES))
    return f.concat(own, f.array(*added).cast(HEADERS))


def watch(query: StreamingQuery) -> tuple[int, int]:
    """Waits for the end of a query; returns how many records were good, and how many bad."""
    batches: dict[int, Row] = {}
    ended = False
    while not ended:
        ended = bool(query.awaitTermination(1))
        # Spark keeps what it tells of the last hundred batches, more than there are in a second.
        for progress in query.recentProgress:
            if COUNTS in progress.observedMetrics:
                batches[progress.batchId] = progress.observedMetrics[COUNTS]
    return sum(row.good or 0 for row in batches.values()), sum(row.bad or 0 for row in batches.values())


if __name__ == "__main__":
    main()
