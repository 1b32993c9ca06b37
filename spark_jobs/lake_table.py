"""A table of Delta Lake whose files Spark writes and reads, and whose log delta-rs keeps: no jar of Delta is needed.

Spark writes into a folder under `_staging`; from there, files move to where they belong, under names that were never
used before. They count as soon as a version of the log names them: whoever reads by the log sees all of a batch or
nothing of it.
"""

from __future__ import annotations

import fcntl
import json
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as parquet
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from spark_jobs.faults import Fault

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Spark names a folder for null."""
_PATTERN, _LITERALLY = re.compile(r"([][{}*?\\])"), r"\\\1"
"""Spark takes the paths that it is given for patterns."""
_ENCODED = re.compile("%[89A-F]")
"""In folders of delta-rs: a byte of UTF-8, of which Spark, whose own folders have no such thing, makes a character."""
_UTC = {"timeZone": "UTC"}
"""Delta's folders for timestamps are of that, whatever zone the session has."""


@contextmanager
def sole(lake: Path, name: str) -> Iterator[None]:
    """Lets one process at a time do what `name` says. Raises Fault where another one does; ends with the process."""
    folder = lake / "_locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Fault(f"another process does this in {lake}: {name}") from None
        yield


def is_lake(lake: Path) -> bool:
    return DeltaTable.is_deltatable(str(lake))


def opened(lake: Path) -> DeltaTable:
    """The table as it is now. Raises Fault where there is none."""
    if not is_lake(lake):
        raise Fault(f"{lake} is no lake")
    return DeltaTable(lake)


def schema_of(table: DeltaTable) -> StructType:
    return StructType.fromJson(json.loads(table.schema().to_json()))


def rows(spark: SparkSession, table: DeltaTable) -> DataFrame:
    """What the table has, whatever is written to it from now on. Raises Fault where Spark alone can't tell."""
    protocol = table.protocol()
    if protocol.min_reader_version == 2 or set(protocol.reader_features or ()) - {"timestampNtz"}:
        raise Fault(f"{table.table_uri} was changed by a Delta that this job does not understand")
    schema = schema_of(table)
    root = unquote(table.table_uri)
    files = [root + unquote(path) for path in table.get_add_actions().column("path").to_pylist()]
    if not files:
        return spark.createDataFrame([], schema)
    patterns = [_PATTERN.sub(_LITERALLY, file) for file in files]
    found = spark.read.schema(schema).options(**_UTC, basePath=root).parquet(*patterns)
    encoded = [Path(file).name for file in files if _ENCODED.search(file.removeprefix(root))]
    if encoded:
        texts = [name for name in table.metadata().partition_columns if schema[name].dataType == StringType()]
        there = f.col("_metadata.file_name").isin(encoded)
        found = found.withColumns(
            {
                name: f.when(there, f.decode(f.encode(name, "ISO-8859-1"), "UTF-8")).otherwise(f.col(name))
                for name in texts
            }
        )
    return found


class Append:
    """Appends batches of one topic to a lake.

    Spark's own file sink keeps a log of the files that count as well, but nobody can put other files in the place of
    those that it names, so that small files stay for ever, and no reader but Spark heeds it. Numbers of batches, which
    a stream could tell Delta, are good for as long as the checkpoint of the stream. So a version tells, with the files
    of a batch, the offset after the last record of each partition, and what the lake has already is left out of a
    batch: that holds whatever is lost, even the checkpoint, and whatever batches are made of.
    """

    def __init__(
        self,
        lake: Path,
        topic: str,
        identity: str,
        current: Callable[[], str],
        schema: StructType,
        folders: tuple[str, ...],
    ) -> None:
        """`identity` is the id of the topic that is read, `current` tells which one has its name by now."""
        self._topic = topic
        self._identity = identity
        self._current = current
        self._lake = lake.resolve()
        self._staging = self._lake / "_staging" / f"{topic}-{identity}"
        self._schema = StructType([StructField(each.name, each.dataType, True) for each in schema.fields])
        self._folders = folders
        self._name = f"kafka:{topic}:{identity}"
        self._reached: dict[int, int] = {}

    def prepare(self, partitions: int) -> None:
        """Looks how far the lake has these partitions. Raises Fault where its columns are others."""
        if is_lake(self._lake):
            table = self._table()
            found = {number: table.transaction_version(self._writer(number)) for number in range(partitions)}
            self._reached = {number: offset for number, offset in found.items() if offset is not None}

    def __call__(self, batch: DataFrame, number: int) -> None:
        # Parquet's own timestamps, instead of a form that Delta does not have; of the stream's session alone.
        batch.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        (
            # Rows of a folder meet in one task, which makes one file of them; in it, those of a partition of the topic
            # lie in the order of their offsets.
            batch.where(beyond(self._reached))
            .repartition(*self._folders)
            .sortWithinPartitions(*self._folders, "partition", "offset")
            .write.options(**_UTC)
            .partitionBy(*self._folders)
            # What a crash left there goes.
            .parquet(f"file://{self._staging}", mode="overwrite")
        )
        if self._current() != self._identity:
            raise Fault(f"{self._topic} was made anew while it was read: start again, and the new one is read")
        if written := sorted(self._staging.rglob("*.parquet")):
            table = self._table()
            after = _ends(written)
            progress = [Transaction(self._writer(partition), end) for partition, end in after.items()]
            table.create_write_transaction(
                [self._moved(path, number) for path in written],
                "append",
                table.schema(),
                list(self._folders),
                commit_properties=CommitProperties(app_transactions=progress),
            )
            self._reached |= after

    def _writer(self, partition: int) -> str:
        """What Delta calls an application: its "version" is an offset here."""
        return f"{self._name}:{partition}"

    def _table(self) -> DeltaTable:
        """The lake, made where it is missing. Raises Fault where its columns are others."""
        schema = Schema.from_json(self._schema.json())
        table = DeltaTable.create(self._lake, schema, mode="ignore", partition_by=list(self._folders))
        before = schema_of(table)
        for name in dict.fromkeys([*before.names, *self._schema.names]):
            old, new = (
                each[name].dataType.simpleString() if name in each.names else "none" for each in (before, self._schema)
            )
            if old != new:
                raise Fault(f"{self._lake} has other columns: {name} is {old} there, {new} here")
        folders = tuple(table.metadata().partition_columns)
        if folders != self._folders:
            raise Fault(f"{self._lake} has folders for {', '.join(folders)}, not {', '.join(self._folders)}")
        return table

    def _moved(self, path: Path, batch: int) -> AddAction:
        folder = path.parent.relative_to(self._staging)
        target = self._lake / folder / f"batch-{batch}-{uuid.uuid4()}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        values = dict(part.split("=", 1) for part in folder.parts)
        state = target.stat()
        return AddAction(
            path=target.relative_to(self._lake).as_posix(),
            size=state.st_size,
            partition_values={
                unquote(name): None if text == _NO_VALUE else unquote(text) for name, text in values.items()
            },
            modification_time=state.st_mtime_ns // 1_000_000,
            data_change=True,
            stats=json.dumps({"numRecords": parquet.read_metadata(target).num_rows}),
        )


def _ends(files: list[Path]) -> dict[int, int]:
    """The offset after the last one of each partition in files of one topic."""
    found: dict[int, int] = {}
    for file in files:
        records = parquet.ParquetFile(file).read(columns=["partition", "offset"])
        for row in records.group_by("partition").aggregate([("offset", "max")]).to_pylist():
            found[row["partition"]] = max(row["offset_max"] + 1, found.get(row["partition"], 0))
    return found


def beyond(offsets: dict[int, int]) -> Column:
    """Whether a record comes at or after the offset of its partition here."""
    if not offsets:
        return f.lit(True)
    known = f.create_map(*(f.lit(number) for pair in offsets.items() for number in pair))
    return f.coalesce(f.col("offset") >= f.try_element_at(known, f.col("partition")), f.lit(True))
