"""A topic as a lake: Parquet files in folders by date, each record once; and the way back into a topic.

    python -m spark_jobs.lake write flights ./lake
    python -m spark_jobs.lake compact ./lake
    python -m spark_jobs.lake replay ./lake flights-again

A lake is a table of Delta Lake, without any jar of it: `format("delta")`, `deltalake.DeltaTable("./lake")`, DuckDB's
`delta_scan('./lake')` and `spark_jobs.lake.table(spark, path)` read it. Readers that look at its folders alone, such as
`spark.read.parquet`, see too much while `write` or `compact` is at work, after a crash of theirs until the next run,
and after `compact` until it removes what it replaced.

The columns are those of a record (key and value, both binary, headers, topic, partition, offset, timestamp,
timestampType), topic_id, those that `--column` adds and those that `--partition` names folders for.

The lake and its checkpoints lie in a folder of the local machine, or one that all its executors mount.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructField, StructType

from spark_jobs.command_line import (
    Run,
    Setting,
    allow_data_loss,
    batch_size,
    committed_only,
    follow,
    job,
    paragraphs,
)
from spark_jobs.delta_log import Action, File, Log, Snapshot, created, now_ms, reached
from spark_jobs.faults import Fault
from spark_jobs.lake_files import Writer, beyond, last_offsets, rows_of, sole
from spark_jobs.topics import reading

WRITE = """
Appends the records of a topic to a lake.

    python -m spark_jobs.lake write flights ./lake
    python -m spark_jobs.lake write flights ./lake --follow --max-offsets-per-trigger 100000
    python -m spark_jobs.lake write flights ./lake \\
        --column "flight=fromjson.loads(string(value), 'carrier STRING, dest STRING')" \\
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
hours after.
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
COMPACTION = "compact"
"""Begins the names of its files, and is its lock."""

lake_folder = click.argument("lake", type=click.Path(file_okay=False, path_type=Path))


@click.group("lake", help=paragraphs(__doc__))
def main() -> None:
    pass


def table(spark: SparkSession, lake: Path) -> DataFrame:
    """The lake as it is now, whatever is written to it from now on. Raises Fault where there is none."""
    return _rows(spark, lake, _existing(lake))


def _existing(lake: Path) -> Snapshot:
    snapshot = Log(lake).snapshot()
    if snapshot.schema is None:
        raise Fault(f"{lake} is no lake")
    return snapshot


def _rows(spark: SparkSession, lake: Path, snapshot: Snapshot, files: list[File] | None = None) -> DataFrame:
    assert snapshot.schema is not None
    schema = StructType.fromJson(json.loads(snapshot.schema))
    return rows_of(spark, lake, schema, list(snapshot.files.values()) if files is None else files)


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
@committed_only
@allow_data_loss
@batch_size
@follow
def write(
    run: Run,
    topic: str,
    lake: Path,
    columns: tuple[tuple[str, str], ...],
    folders: tuple[tuple[str, str], ...],
    committed_only: bool,
    allow_data_loss: bool,
    max_offsets_per_trigger: int | None,
    follow: bool,
) -> None:
    _demand_lake_or_nothing(lake)
    identity = run.cluster.topic_id(run.spark, topic)
    options = reading(max_offsets_per_trigger, committed_only=committed_only, allow_data_loss=allow_data_loss)
    records = run.cluster.stream(run.spark, topic, **options).withColumn("topic_id", f.lit(identity))
    records = _with(_with(records, columns), folders)
    append = Append(lake, topic, identity, tuple(name for name, _ in folders))
    # Parquet's own timestamps, instead of a form that Delta does not have.
    run.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    with sole(lake, f"write-{topic}"):
        append.prepare(records.schema)
        stream = records.writeStream.foreachBatch(append)
        run.start(stream, lake / "_checkpoints" / f"{topic}-{identity}", follow=follow).awaitTermination()


def _demand_lake_or_nothing(lake: Path) -> None:
    if Log(lake).snapshot().schema is None and lake.exists():
        strange = [path.name for path in lake.iterdir() if not path.name.startswith("_")]
        if strange:
            raise Fault(f"{lake} is no lake, and not empty: it has {strange[0]}")


def _with(records: DataFrame, columns: tuple[tuple[str, str], ...]) -> DataFrame:
    """With these columns more. Raises Fault where one has a name that is taken."""
    taken = {name.lower() for name in records.columns}
    for name, _ in columns:
        if name.lower() in taken:
            raise Fault(f"there is a column {name} already")
        taken.add(name.lower())
    return records.select("*", *(f.expr(sql).alias(name) for name, sql in columns))


class Append:
    """Appends batches of one topic to a lake.

    Spark's own file sink keeps a log of the files that count as well, but nobody can put other files in the place of
    those that it names, so that small files stay for ever, and no reader but Spark heeds it. A folder for each batch,
    made anew when the batch comes again, can't be compacted with others either. So this keeps Delta's log, where a
    version names the files of a batch and how far they reach in each partition. What the log has is left out of a
    batch that comes again: that holds whatever is lost, even the checkpoint, and whatever batches are made of.
    """

    def __init__(self, lake: Path, topic: str, identity: str, folders: tuple[str, ...]) -> None:
        self._lake = lake
        self._topic = topic
        self._folders = folders
        self._log = Log(lake)
        self._writer = Writer(lake, f"batch-{topic}-{identity}")
        self._name = f"kafka:{topic}:{identity}:"

    def prepare(self, schema: StructType) -> None:
        """Makes the lake where it is missing, removes what a crash left. Raises Fault where its columns differ."""
        nullable = StructType([StructField(each.name, each.dataType, True) for each in schema.fields])
        self._log.commit("CREATE TABLE", lambda present: self._created(present, nullable))
        self._writer.clean(self._log)

    def _created(self, present: Snapshot, schema: StructType) -> list[Action]:
        if present.schema is None:
            return created(schema.json(), self._folders)
        before = StructType.fromJson(json.loads(present.schema))
        for name in dict.fromkeys([*before.names, *schema.names]):
            old, new = (
                each[name].dataType.simpleString() if name in each.names else "none" for each in (before, schema)
            )
            if old != new:
                raise Fault(f"{self._lake} has other columns: {name} is {old} there, {new} here")
        if present.folders != self._folders:
            raise Fault(f"{self._lake} has folders for {', '.join(present.folders)}, not {', '.join(self._folders)}")
        return []

    def __call__(self, batch: DataFrame, number: int) -> None:
        before = self._reached(self._log.snapshot())
        files = self._writer.write(batch.where(beyond(before)), self._folders)
        after = {partition: last + 1 for partition, last in last_offsets(self._lake, files).items()}
        self._log.commit("STREAMING UPDATE", lambda present: self._appended(present, files, before, after))

    def _appended(
        self, present: Snapshot, files: list[File], before: dict[int, int], after: dict[int, int]
    ) -> list[Action]:
        if self._reached(present) != before:
            raise Fault(f"another process writes {self._topic} to {self._lake}")
        return [
            *(reached(f"{self._name}{partition}", end) for partition, end in after.items()),
            *(file.added(new=True) for file in files),
        ]

    def _reached(self, snapshot: Snapshot) -> dict[int, int]:
        """The next offset of each partition."""
        known = {name: end for name, end in snapshot.progress.items() if name.startswith(self._name)}
        return {int(name.removeprefix(self._name)): end for name, end in known.items()}


@job("lake compact", COMPACT, brokers=False)
@lake_folder
@click.option(
    "--target-size", type=click.FloatRange(min=0, min_open=True), default=128.0, metavar="MB", help="Of a file."
)
@click.option("--keep", type=click.FloatRange(min=0), default=24.0, metavar="HOURS", help="For whoever still reads.")
def compact(run: Run, lake: Path, target_size: float, keep: float) -> None:
    _existing(lake)
    with sole(lake, COMPACTION):
        log, writer = Log(lake), Writer(lake, COMPACTION)
        writer.clean(log)
        snapshot = log.snapshot()
        target = max(1, int(target_size * MEGABYTE))
        old = small_files(snapshot, target)
        new: list[File] = []
        if old:
            run.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            new = compacted(run.spark, lake, snapshot, old, writer, target)
            log.commit("OPTIMIZE", lambda present: _replaced(lake, present, old, new))
        gone = remove_replaced(lake, log.snapshot(), now_ms() - int(keep * 3_600_000))
    click.echo(f"{len(old)} files became {len(new)}; {gone} that were replaced before are gone")


def small_files(snapshot: Snapshot, target: int) -> list[File]:
    """Those of less than half the target, where a folder has more than one: so that they do become fewer."""
    found: dict[tuple[str | None, ...], list[File]] = {}
    for file in snapshot.files.values():
        if file.size < target / 2:
            found.setdefault(tuple(file.values[name] for name in snapshot.folders), []).append(file)
    return [file for files in found.values() if len(files) > 1 for file in files]


def compacted(
    spark: SparkSession, lake: Path, snapshot: Snapshot, old: list[File], writer: Writer, target: int
) -> list[File]:
    """New files with the rows of old ones."""
    records = sum(file.records for file in old)
    per_file = max(1, records * target // sum(file.size for file in old))
    new = writer.write(_rows(spark, lake, snapshot, old), snapshot.folders, records_per_file=per_file)
    if sum(file.records for file in new) != records:
        raise Fault(f"{lake} has files that do not hold what its log says: nothing is changed")
    return new


def _replaced(lake: Path, present: Snapshot, old: list[File], new: list[File]) -> list[Action]:
    if any(file.path not in present.files for file in old):
        raise Fault(f"another program changed {lake} meanwhile: nothing is compacted")
    return [*(file.removed() for file in old), *(file.added(new=False) for file in new)]


def remove_replaced(lake: Path, snapshot: Snapshot, before_ms: int) -> int:
    """Removes files that stopped to count before then; returns how many."""
    gone = 0
    for name, replaced_ms in snapshot.removed.items():
        path = lake / name
        if replaced_ms <= before_ms and path.exists():
            path.unlink()
            gone += 1
    return gone


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
    rows = table(run.spark, lake)
    if where is not None:
        rows = rows.where(where)
    partitions = 1 + _last_partition(rows)
    present = run.cluster.provide(run.spark, target, partitions, {"retention.ms": "-1"})
    if present < partitions and not by_key:
        raise Fault(f"{target} has {present} partitions, the records have {partitions}: add some, or use --by-key")
    settings = {
        "bootstrap.servers": run.cluster.bootstrap_servers,
        "enable.idempotence": True,
        "linger.ms": 50,
        "partitioner": "murmur2_random",
        **dict(producer),
    }
    records = (
        # All of a partition go through one task, in the order of their offsets.
        rows.repartition(run.spark.sparkContext.defaultParallelism, "partition")
        .sortWithinPartitions("partition", "offset")
        .select("key", "value", "headers", "partition", f.unix_millis("timestamp").alias("time"))
    )
    done = records.mapInArrow(sender(settings, target, by_key=by_key), "records LONG, error STRING").collect()
    written = sum(task["records"] for task in done)
    for task in done:
        if task["error"] is not None:
            raise Fault(f"{target}: {task['error']}; {written} records were written before")
    click.echo(f"{written} records")


def _last_partition(rows: DataFrame) -> int:
    """Raises Fault where these rows are not those of one topic."""
    found = rows.groupBy("topic", "topic_id").agg(f.max("partition").alias("last")).collect()
    if not found:
        raise Fault("there are no such records")
    if len(found) > 1:
        choices = " or ".join(f"topic_id = '{each['topic_id']}' ({each['topic']})" for each in found)
        raise Fault(f"these are records of several topics; choose one by --where: {choices}")
    return found[0]["last"]


Sender = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def sender(settings: dict[str, Any], topic: str, *, by_key: bool) -> Sender:
    """Writes batches of records; gives how many, and what went wrong first.

    An error is given rather than raised: a task that fails is run again by Spark, from its first record.
    """

    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from confluent_kafka import KafkaException, Producer

        errors: list[str] = []
        written = 0

        def delivered(error: Any, message: Any) -> None:
            nonlocal written
            if error is None:
                written += 1
            else:
                errors.append(error.str())

        try:
            producer = Producer({**settings, "on_delivery": delivered})
            for batch in batches:
                for record in batch.to_pylist():
                    headers = [(header["key"], header["value"]) for header in record["headers"] or ()]
                    place = {} if by_key else {"partition": record["partition"]}
                    # Its queue is full where the brokers are slower than this.
                    while not errors and not _accepted(producer, topic, record, headers, place):
                        producer.poll(0.1)
                    if errors:
                        break
                producer.poll(0)
                if errors:
                    producer.purge()
                    break
            while producer.flush(1) and not errors:
                pass
        except KafkaException as error:
            errors.append(error.args[0].str())
        yield pa.RecordBatch.from_pylist(
            [{"records": written, "error": errors[0] if errors else None}],
            pa.schema([("records", pa.int64()), ("error", pa.string())]),
        )

    def _accepted(producer: Any, topic: str, record: dict, headers: list, place: dict[str, int]) -> bool:
        try:
            producer.produce(
                topic, key=record["key"], value=record["value"], headers=headers, timestamp=record["time"], **place
            )
        except BufferError:
            return False
        return True

    return send


for _command in (write, compact, replay):
    main.add_command(_command, _command.name.rpartition(" ")[2])

if __name__ == "__main__":
    main()
