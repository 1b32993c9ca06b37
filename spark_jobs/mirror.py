"""Copies a topic to another one, within a cluster or to another: keys, values, headers, each record in its partition.

    python -m spark_jobs.mirror orders orders-copy --checkpoint ./mirror
    python -m spark_jobs.mirror orders orders --to other:9092 --checkpoint ./mirror --follow
    python -m spark_jobs.mirror orders large-orders --checkpoint ./mirror \\
        --where "get_json_object(string(value), '$.amount') > 1000" --value "upper(string(value))"

Expressions are SQL over the columns of a record: key, value (both binary), headers, topic, partition, offset,
timestamp. What they give is written as text, bytes as they are. A target that is missing is created, with as many
partitions as the source has.

At least once: a batch that was under way at a crash is written again. The copies have times of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_jobs.command_line import Run, Servers, Setting, checkpoint, follow, job, reads
from spark_jobs.faults import Fault
from spark_jobs.records import as_bytes, header
from spark_jobs.topics import Cluster, Reading


@job("mirror", __doc__)
@click.argument("source")
@click.argument("target")
@click.option("--to", type=Servers(), help="Brokers of the target, where it is in another cluster.")
@click.option("--to-kafka", type=Setting(), multiple=True, metavar="KEY=VALUE", help="As --kafka, for the target.")
@click.option("--where", metavar="SQL", help="Only records for which this is true.")
@click.option("--key", metavar="SQL", help="The key of the copy.")
@click.option("--value", metavar="SQL", help="The value of the copy.")
@click.option("--header", "headers", type=Setting(), multiple=True, metavar="NAME=SQL", help="A header more.")
@click.option("--by-key", is_flag=True, help="Let the key choose the partition of the copy.")
@reads
@checkpoint
@follow
def main(
    run: Run,
    source: str,
    target: str,
    to: str | None,
    to_kafka: tuple[tuple[str, str], ...],
    where: str | None,
    key: str | None,
    value: str | None,
    headers: tuple[tuple[str, str], ...],
    by_key: bool,
    reading: Reading,
    checkpoint: Path,
    follow: bool,
) -> None:
    if to is None and to_kafka:
        raise click.UsageError("--to-kafka goes with --to")
    there = Cluster(to, dict(to_kafka)) if to is not None else run.cluster
    partitions = run.cluster.demand(run.spark, source)[source]
    present = there.provide(run.spark, target, partitions, {})
    if source == target and run.cluster.topic_id(run.spark, source) == there.topic_id(run.spark, target):
        raise Fault(f"{source} would be copied into itself")
    if present < partitions and not by_key:
        raise Fault(f"{target} has {present} partitions, {source} has {partitions}: add some, or use --by-key")
    records = copies(run.cluster.stream(run.spark, source, reading), where, key, value, dict(headers), by_key=by_key)
    writer = there.sink(records, target)
    run.start(writer, checkpoint, follow=follow, topics=[source], to=there, target=target).awaitTermination()


def copies(
    records: DataFrame, where: str | None, key: str | None, value: str | None, headers: dict[str, str], *, by_key: bool
) -> DataFrame:
    """What is to be written of these records."""
    if where is not None:
        records = records.where(where)
    columns = [
        as_bytes(key or "key").alias("key"),
        as_bytes(value or "value").alias("value"),
        with_headers(f.col("headers"), headers).alias("headers"),
    ]
    return records.select(*columns, *([] if by_key else ["partition"]))


def with_headers(present: Column, more: dict[str, str]) -> Column:
    """Headers and those that are given by expressions."""
    if not more:
        return present
    added = [header(name, as_bytes(value)) for name, value in more.items()]
    return f.concat(f.coalesce(present, f.array().cast("array<struct<key:string,value:binary>>")), f.array(*added))


if __name__ == "__main__":
    main()
