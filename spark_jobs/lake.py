"""A topic as a lake: Parquet files in folders by date, each record once; and the way back into a topic.

    python -m spark_jobs.lake write flights ./lake
    python -m spark_jobs.lake compact ./lake
    python -m spark_jobs.lake replay ./lake flights-again

A lake is a table of Delta Lake: what reads those reads it, such as `deltalake.DeltaTable("./lake")`, and, without a jar
of Delta, `spark_jobs.lake_table.rows(spark, table)`. Readers that look at its folders alone, such as
`spark.read.parquet`, see too much while `write` or `compact` is at work, and what a crash or a compaction left until
`compact` removes it.

The columns are those of a record (key and value, both binary, headers, topic, partition, offset, timestamp,
timestampType), topic_id, those that `--column` adds and those that `--partition` names folders for.

The lake and its checkpoints lie in a folder of the local machine, or one that all its executors mount.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import NullType

from spark_jobs.command_line import Run, Setting, follow, job, paragraphs, reads
from spark_jobs.faults import Fault
from spark_jobs.lake_table import Append, is_lake, opened, rows, sole
from spark_jobs.sending import sender
from spark_jobs.topics import Reading

WRITE = """
Appends the records of a topic to a lake.

    python -m spark_jobs.lake write flights ./lake
    python -m spark_jobs.lake write flights ./lake --follow --max-offsets-per-trigger 100000
    python -m spark_jobs.lake write flights ./lake \\
        --column "flight=from_json(string(value), 'carrier STRING, dest STRING')" \\
        --partition "month=date_format(timestamp, 'yyyy-MM')" --partition "carrier=flight.carrier"

Expressions are SQL over the columns of a record: key, value (both binary), headers, topic, partition, offset,
timestamp; those of --partition may use the columns of --column too. Several topics may share a lake, where their
columns are the same.

Exactly once: the lake itself knows how far it has each partition, and tells it with the files that a batch makes, in
one step. A batch that was under way at a crash comes again, and is written without what the lake has already. How far
the stream is lies in the lake as well: started again, the job goes on there. A topic that was made anew under its old
name is another topic.
"""

COMPACT = """
Makes few large files out of many small ones, in each folder of a lake.

    python -m spark_jobs.lake compact ./lake
    python -m spark_jobs.lake compact ./lake --target-size 512 --keep 0

It may run while the lake is written and read. Nobody sees a record twice or not at all, and a crash changes nothing or
all. Files that were replaced stay for those who began to read before, and are removed by a later compaction, --keep
hours after. What a crash left behind is removed when it is a day old.

This process does it, without Spark.
"""

REPLAY = """
Writes what a lake has of a topic to a topic: keys, values, headers and times, each record in its partition, each
partition in the order of its offsets.

    python -m spark_jobs.lake replay ./lake flights-again
    python -m spark_jobs.lake replay ./lake flights-again --where "date >= '2013-12-24' AND topic = 'flights'"

A target that is missing is created, with as many partitions as the records need, and without an end to their life:
they are old already.

At least once: what a crash or an error interrupts is started anew, into a new topic if nothing may come twice. A time
of exactly 1970-01-01 00:00:00 becomes that of writing, a peculiarity of librdkafka.
"""

BY_DATE = ("date", "date(timestamp)")
MEGABYTE = 1 << 20
_CHECKPOINTS = "_checkpoints"
ABANDONED_HOURS = 24
"""A file that no version of the log names after that time won't be named any more."""


def _local(context: click.Context, option: click.Parameter, given: Path) -> Path:
    if re.match(r"[a-z][a-z0-9+.-]+:/", str(given)):
        raise click.BadParameter("a folder, not an address: object stores are left out")
    return given


lake_folder = click.argument("lake", type=click.Path(file_okay=False, path_type=Path), callback=_local)


@click.group("lake", help=paragraphs(__doc__))
def main() -> None:
    pass


@job("lake write", WRITE)
@click.argument("topic")
@lake_folder
@click.option("--column", "columns", type=Setting(), multiple=True, metavar="NAME=SQL", help="A column more.")
@click.option(
    "--partition",
    "folders",
    type=Setting(),
    multiple=True,
    metavar="NAME=SQL",
    default=[BY_DATE],
    show_default="=".join(BY_DATE),
    help="Files lie in a folder for each value of this; may be repeated.",
)
@reads
@follow
def write(
    run: Run,
    topic: str,
    lake: Path,
    columns: tuple[tuple[str, str], ...],
    folders: tuple[tuple[str, str], ...],
    reading: Reading,
    follow: bool,
) -> None:
    _demand_lake_or_nothing(lake)
    partitions = run.cluster.demand(run.spark, topic)[topic]
    identity = run.cluster.topic_id(run.spark, topic)
    records = run.cluster.stream(run.spark, topic, reading).withColumn("topic_id", f.lit(identity))
    records = _with(_with(records, columns), folders)
    append = Append(
        lake,
        topic,
        identity,
        lambda: run.cluster.topic_id(run.spark, topic),
        records.schema,
        tuple(name for name, _ in folders),
    )
    with sole(lake, f"write-{topic}"):
        append.prepare(partitions)
        stream = records.writeStream.foreachBatch(append)
        run.start(stream, lake / _CHECKPOINTS / f"{topic}-{identity}", follow=follow).awaitTermination()


def _demand_lake_or_nothing(lake: Path) -> None:
    if lake.exists() and not is_lake(lake):
        strange = [path.name for path in lake.iterdir() if not path.name.startswith("_")]
        if strange:
            raise Fault(f"{lake} is no lake, and not empty: it has {strange[0]}")
        if next((lake / _CHECKPOINTS).glob("*/commits/[0-9]*"), None) is not None:
            raise Fault(
                f"{lake} is a lake no more, though {lake / _CHECKPOINTS} says that it was written: remove that too"
            )


def _with(records: DataFrame, columns: tuple[tuple[str, str], ...]) -> DataFrame:
    """With these columns more. Raises Fault where one has a name that is taken, or no type."""
    taken = {name.lower() for name in records.columns}
    for name, _ in columns:
        if name.lower() in taken:
            raise Fault(f"there is a column {name} already")
        taken.add(name.lower())
    found = records.select("*", *(f.expr(sql).alias(name) for name, sql in columns))
    for column in found.schema:
        if isinstance(column.dataType, NullType):
            raise Fault(f"column {column.name} is of type VOID: cast it to what it is to be")
    return found


@job("lake compact", COMPACT, brokers=False, spark=False)
@lake_folder
@click.option(
    "--target-size", type=click.FloatRange(min=0, min_open=True), default=128.0, metavar="MB", help="Of a file."
)
@click.option("--keep", type=click.IntRange(min=0), default=24, metavar="HOURS", help="For whoever still reads.")
def compact(_: Run, lake: Path, target_size: float, keep: int) -> None:
    table = opened(lake)
    with sole(lake, "compact"):
        done = table.optimize.compact(target_size=max(1, int(target_size * MEGABYTE)))
        table.vacuum(keep, dry_run=False, enforce_retention_duration=False)
        # Whatever the log does not name, which may be what `write` is about to name.
        table.vacuum(max(keep, ABANDONED_HOURS), dry_run=False, enforce_retention_duration=False, full=True)
    click.echo(f"{done['numFilesRemoved']} files became {done['numFilesAdded']}")


@job("lake replay", REPLAY)
@lake_folder
@click.argument("target")
@click.option("--where", metavar="SQL", help="Only records for which this is true.")
@click.option("--by-key", is_flag=True, help="Let the key choose the partition, as Java's clients do.")
@click.option(
    "--producer",
    type=Setting(),
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the producer, by librdkafka's name; may be repeated.",
)
def replay(
    run: Run, lake: Path, target: str, where: str | None, by_key: bool, producer: tuple[tuple[str, str], ...]
) -> None:
    table = opened(lake)
    found = rows(run.spark, table)
    if where is not None:
        found = found.where(where)
    partitions = 1 + _last_partition(found)
    present = run.cluster.provide(run.spark, target, partitions, {"retention.ms": "-1"})
    if present < partitions and not by_key:
        raise Fault(f"{target} has {present} partitions, the records have {partitions}: add some, or use --by-key")
    records = (
        # All of a partition go through one task, in the order of their offsets.
        found.repartition(run.spark.sparkContext.defaultParallelism, "partition")
        .sortWithinPartitions("partition", "offset")
        .select("key", "value", "headers", "partition", f.unix_millis("timestamp").alias("time"))
    )
    send = sender({"bootstrap.servers": run.cluster.bootstrap_servers, **dict(producer)}, target, by_key=by_key)
    done = records.mapInArrow(send, "records LONG, error STRING").collect()
    written = sum(task["records"] for task in done)
    for task in done:
        if task["error"] is not None:
            raise Fault(f"{target}: {task['error']}; {written} records were written before")
    click.echo(f"{written} records")


def _last_partition(records: DataFrame) -> int:
    """Raises Fault where these records are not those of one topic."""
    found = records.groupBy("topic", "topic_id").agg(f.max("partition").alias("last")).collect()
    if not found:
        raise Fault("there are no such records")
    if len(found) > 1:
        choices = " or ".join(f"topic_id = '{each['topic_id']}' ({each['topic']})" for each in found)
        raise Fault(f"these are records of several topics; choose one by --where: {choices}")
    return found[0]["last"]


for _name, _command in {"write": write, "compact": compact, "replay": replay}.items():
    main.add_command(_command, _name)

if __name__ == "__main__":
    main()
