"""The files of a lake: rows become Parquet files that wait for a version of the log to name them.

Spark writes into a folder under `_staging`; from there, files move to where they belong, under names that were never
used before. Whoever reads by the log sees none of them until it names them. What a crash leaves behind is told from
the rest by the beginning of its name, and is removed by the next run of the same kind: a lock keeps those apart.
"""

from __future__ import annotations

import fcntl
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from spark_jobs.delta_log import File, Log, on_disk
from spark_jobs.faults import Fault

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Spark names a folder for null."""


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


def rows_of(spark: SparkSession, lake: Path, schema: StructType, files: list[File]) -> DataFrame:
    """The rows of these files."""
    if not files:
        return spark.createDataFrame([], schema)
    root = lake.resolve()
    paths = [f"file://{root / file.path}" for file in files]
    return spark.read.schema(schema).option("basePath", f"file://{root}").parquet(*paths)


class Writer:
    """Writes rows into files whose names begin alike, which are this writer's alone."""

    def __init__(self, lake: Path, name: str) -> None:
        self._lake = lake
        self._name = name

    def write(self, rows: DataFrame, folders: tuple[str, ...], *, records_per_file: int = 0) -> list[File]:
        """The new files: one in each folder, or several where one would hold too many records."""
        staged = self._lake.resolve() / "_staging" / f"{self._name}-{uuid.uuid4()}"
        (
            # Rows of a folder meet in one task, which makes one file of them; in it, those of a partition of a topic
            # lie in the order of their offsets.
            rows.repartition(*folders)
            .sortWithinPartitions(*folders, "topic", "partition", "offset")
            .write.option("maxRecordsPerFile", records_per_file)
            .partitionBy(*folders)
            .parquet(f"file://{staged}")
        )
        files = [self._moved(path, staged) for path in sorted(staged.rglob("*.parquet"))]
        for folder in {(self._lake / file.path).parent for file in files}:
            on_disk(folder)
        shutil.rmtree(staged)
        return files

    def _moved(self, path: Path, staged: Path) -> File:
        records = parquet.read_metadata(path).num_rows
        folder = path.parent.relative_to(staged)
        target = self._lake / folder / f"{self._name}-{uuid.uuid4()}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        on_disk(path)
        path.rename(target)
        values = dict(part.split("=", 1) for part in folder.parts)
        return File(
            target.relative_to(self._lake).as_posix(),
            {unquote(name): None if text == _NO_VALUE else unquote(text) for name, text in values.items()},
            target.stat().st_size,
            records,
        )

    def clean(self, log: Log) -> None:
        """Removes what earlier runs left behind: nothing of this writer may be under way."""
        snapshot = log.snapshot()
        for path in self._lake.rglob(f"{self._name}-*.parquet"):
            name = path.relative_to(self._lake).as_posix()
            if name not in snapshot.files and name not in snapshot.removed:
                path.unlink()
        for folder in self._lake.glob(f"_staging/{self._name}-*"):
            shutil.rmtree(folder)


def last_offsets(lake: Path, files: list[File]) -> dict[int, int]:
    """The last offset of each partition in files of one topic."""
    found: dict[int, int] = {}
    for file in files:
        table = parquet.ParquetFile(lake / file.path).read(columns=["partition", "offset"])
        for row in table.group_by("partition").aggregate([("offset", "max")]).to_pylist():
            found[row["partition"]] = max(row["offset_max"], found.get(row["partition"], -1))
    return found


def beyond(offsets: dict[int, int]) -> object:
    """Whether a record comes at or after the offset of its partition here, as a column."""
    if not offsets:
        return f.lit(True)
    known = f.create_map(*(f.lit(number) for pair in offsets.items() for number in pair))
    return f.coalesce(f.col("offset") >= f.try_element_at(known, f.col("partition")), f.lit(True))
