"""A compacted topic as a table that grows with a stream: the latest value of each key, as of each of its batches."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs.faults import Fault
from spark_jobs.topics import Cluster, Reading

SCHEMA = "key BINARY, value BINARY"
_EARLIEST = -2
"""An offset, in the connector's words."""


@dataclass(frozen=True)
class _Version:
    """The table as a batch saw it."""

    batch: int
    topic_id: str
    offsets: Mapping[int, int]
    """Of each partition: the first offset that is not in it."""
    data: str
    """The name of its folder. A batch before which nothing was written shares that of the one before it."""


class LatestValues:
    """Keeps the table in a folder: a file BATCH.json for each version, and its rows in Parquet.

    A version is complete before its batch writes anything, and a batch that comes again finds the one it had: it gives
    the same rows, whatever has been written to the topic since. The two latest are kept, which is as far back as Spark
    goes.
    """

    def __init__(self, cluster: Cluster, topic: str, folder: Path, reading: Reading) -> None:
        self._cluster = cluster
        self._reading = replace(reading, max_offsets_per_trigger=None)
        self._topic = topic
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def as_of(self, spark: SparkSession, batch: int) -> DataFrame:
        """Key and value, of all keys that are not deleted. Raises Fault where the topic is another one by now."""
        versions = [self._version(int(file.stem)) for file in self._folder.glob("*.json")]
        same = [version for version in versions if version.batch == batch]
        if same:
            return self._rows(spark, same[0])
        before = max(
            (version for version in versions if version.batch < batch), key=lambda each: each.batch, default=None
        )
        version = self._advanced(spark, before, batch)
        self._keep(version)
        self._forget_all_but([version, before] if before else [version])
        return self._rows(spark, version)

    def _rows(self, spark: SparkSession, version: _Version) -> DataFrame:
        return spark.read.schema(SCHEMA).parquet(str(self._folder / version.data))

    def _advanced(self, spark: SparkSession, before: _Version | None, batch: int) -> _Version:
        topic_id = self._cluster.topic_id(spark, self._topic)
        ends = self._cluster.ends(spark, self._topic, committed_only=self._reading.committed_only)
        starts = {partition: before.offsets.get(partition, _EARLIEST) if before else _EARLIEST for partition in ends}
        if before and before.topic_id != topic_id:
            raise Fault(f"{self._topic} was made anew: remove {self._folder}, and the table is read from its beginning")
        if before and before.offsets == ends:
            return _Version(batch, topic_id, ends, before.data)
        news = self._news(spark, starts, ends)
        rows = news.where("value IS NOT NULL")
        if before:
            rows = self._rows(spark, before).join(news, "key", "left_anti").unionByName(rows)
        data = f"rows-{batch}"
        rows.write.mode("overwrite").parquet(str(self._folder / data))
        return _Version(batch, topic_id, ends, data)

    def _news(self, spark: SparkSession, starts: Mapping[int, int], ends: Mapping[int, int]) -> DataFrame:
        """The last value of each key between these offsets; null where it is deleted."""
        options = self._reading.options | {
            "startingOffsets": json.dumps({self._topic: starts}),
            "endingOffsets": json.dumps({self._topic: ends}),
        }
        records = self._cluster.read(spark, self._topic, **options).where("key IS NOT NULL")
        return records.groupBy("key").agg(f.max_by("value", "offset").alias("value"))

    def _version(self, batch: int) -> _Version:
        told = json.loads(self._file(batch).read_text())
        offsets = {int(partition): offset for partition, offset in told["offsets"].items()}
        return _Version(batch, told["topic_id"], offsets, told["data"])

    def _keep(self, version: _Version) -> None:
        draft = self._folder / "draft"
        with draft.open("w") as file:
            json.dump({"topic_id": version.topic_id, "offsets": version.offsets, "data": version.data}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._file(version.batch))

    def _forget_all_but(self, kept: list[_Version]) -> None:
        for file in self._folder.glob("*.json"):
            if int(file.stem) not in {version.batch for version in kept}:
                file.unlink()
        for rows in self._folder.glob("rows-*"):
            if rows.name not in {version.data for version in kept}:
                shutil.rmtree(rows)

    def _file(self, batch: int) -> Path:
        return self._folder / f"{batch}.json"
