"""Counts the records of topics with Spark, between offsets that are known beforehand."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as f

from spark_jobs.auditing.numbers import Duplicates, Gap, Gaps, Lag, PartitionCounts, Repeated, TopicCounts
from spark_jobs.auditing.offsets import Bounds, Commit
from spark_jobs.topics import Cluster

MOST_GAPS = 5
"""Gaps of a partition that are told by their offsets."""
MOST_REPEATED = 10
"""Identities that are told with their places."""
PREVIEW = 60
"""Characters of an identity that are told."""
WIDTHS = tuple(
    1000 * seconds for seconds in (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400, 28 * 86_400)
)
"""Slots of time that a plot may have, in ms."""
MOST_SLOTS = 120
LATEST = 253_402_300_800_000
"""The end of the year 9999, in ms: nothing shows what comes after."""
PLACE = ("topic", "partition")


class Counting:
    """The records of some topics, read once; where transactions may have ended, their offsets a second time."""

    def __init__(self, spark: SparkSession, cluster: Cluster, bounds: Sequence[Bounds], identity: str | None) -> None:
        self._spark = spark
        self._cluster = cluster
        self._bounds = bounds
        self._places = spark.createDataFrame(
            [(each.topic, each.partition, each.start, each.stable) for each in bounds],
            "topic string, partition int, start long, stable long",
        )
        ends = {(each.topic, each.partition): each.end for each in bounds}
        records = self._read(ends).select(*_columns(identity)).join(f.broadcast(self._places), list(PLACE))
        self._records = records.persist(StorageLevel.MEMORY_AND_DISK)
        self._gaps = self._found_gaps()

    def close(self) -> None:
        """Gives back what Spark keeps."""
        if "_committed" in self.__dict__:
            self._committed.unpersist()
        self._records.unpersist()

    def topics(self, policies: Mapping[str, str]) -> tuple[TopicCounts, ...]:
        """What is in each."""
        parts = self._partitions()
        duplicates = self._duplicates()
        sizes = self._sizes()
        found = []
        for name in sorted({each.topic for each in self._bounds}):
            own = tuple(part for part in parts if part.bounds.topic == name)
            width = _width(own)
            found.append(
                TopicCounts(name, policies[name], own, duplicates[name], width, self._slots(name, width), sizes[name])
            )
        return tuple(found)

    def lags(self, commits: Sequence[Commit]) -> tuple[Lag, ...]:
        """How far the groups are behind. Records that a reader of committed records does not get don't count."""
        known = [each for each in commits if each.offset is not None]
        rows: dict[Any, Row] = {}
        if known:
            offsets = self._spark.createDataFrame(
                [(each.group, each.topic, each.partition, each.offset) for each in known],
                "group string, topic string, partition int, committed long",
            )
            left = self._committed.join(f.broadcast(offsets), list(PLACE)).where("offset >= committed")
            counted = left.groupBy("group", *PLACE).agg(f.count("*").alias("unread"), f.min("time").alias("oldest"))
            rows = {(row.group, row.topic, row.partition): row for row in counted.collect()}
        bounds = {(each.topic, each.partition): each for each in self._bounds}
        found = []
        for each in commits:
            row = rows.get((each.group, each.topic, each.partition))
            unread = None if each.offset is None else row.unread if row else 0
            found.append(Lag(each, bounds[each.topic, each.partition], unread, row.oldest if row else None))
        return tuple(found)

    def _read(self, ends: Mapping[tuple[str, int], int], **options: object) -> DataFrame:
        starts: dict[str, dict[str, int]] = defaultdict(dict)
        until: dict[str, dict[str, int]] = defaultdict(dict)
        for each in self._bounds:
            starts[each.topic][str(each.partition)] = each.start
            until[each.topic][str(each.partition)] = ends[each.topic, each.partition]
        positions = {"startingOffsets": json.dumps(starts), "endingOffsets": json.dumps(until)}
        return self._cluster.read(self._spark, ",".join(sorted(starts)), **positions, **options)

    @cached_property
    def _committed(self) -> DataFrame:
        """What a reader of committed records gets."""
        records = self._records.where("offset < stable")
        if not any(gaps.count for gaps in self._gaps.values()):
            return records  # the end of a transaction takes an offset: none has ended here
        ends = {(each.topic, each.partition): each.stable for each in self._bounds}
        seen = self._read(ends, **{"kafka.isolation.level": "read_committed"}).select(*PLACE, "offset")
        return records.join(seen, [*PLACE, "offset"], "left_semi").persist(StorageLevel.MEMORY_AND_DISK)

    def _found_gaps(self) -> dict[tuple[str, int], Gaps]:
        """By partition."""
        before = f.lag("offset").over(Window.partitionBy(*PLACE).orderBy("offset"))
        first = f.coalesce(before + 1, f.col("start")).alias("first")
        runs = self._records.select(*PLACE, first, (f.col("offset") - 1).alias("last")).where("first <= last")
        runs = runs.withColumn("length", f.col("last") - f.col("first") + 1)
        rank = f.row_number().over(Window.partitionBy(*PLACE).orderBy(f.desc("length"), "first"))
        named = f.when(f.col("rank") <= MOST_GAPS, f.struct("rank", "first", "last"))
        rows = runs.withColumn("rank", rank).groupBy(*PLACE).agg(
            f.count("*").alias("count"),
            f.sum("length").alias("offsets"),
            f.count_if(f.col("length") == 1).alias("singles"),
            f.array_sort(f.collect_list(named)).alias("longest"),
        )  # fmt: skip
        found = {
            (row.topic, row.partition): Gaps(
                row["count"], row.offsets, row.singles, tuple(Gap(each["first"], each["last"]) for each in row.longest)
            )
            for row in rows.collect()
        }
        last = {
            (row.topic, row.partition): row.last
            for row in self._records.groupBy(*PLACE).agg(f.max("offset").alias("last")).collect()
        }
        # What follows the last record has no record after it.
        for each in self._bounds:
            place = (each.topic, each.partition)
            gaps = found.get(place, Gaps())
            begin = last.get(place, each.start - 1) + 1
            found[place] = gaps.joined(Gap(begin, each.end - 1), MOST_GAPS) if begin < each.end else gaps
        return found

    def _partitions(self) -> list[PartitionCounts]:
        counted = self._records.groupBy(*PLACE).agg(
            f.count("*").alias("records"),
            f.count_if(f.col("offset") < f.col("stable")).alias("ended"),
            f.sum("size").alias("bytes"),
            f.percentile_approx("size", [0.5, 0.99], 10_000).alias("percentiles"),
            f.max("size").alias("largest"),
            f.count_if("null_key").alias("null_keys"),
            f.count_if("null_value").alias("null_values"),
            f.count_if(f.col("time").isNull()).alias("untimed"),
            f.min("time").alias("first_time"),
            f.max("time").alias("last_time"),
        )  # fmt: skip
        committed = self._committed.groupBy(*PLACE).count()
        seen = {(row.topic, row.partition): row["count"] for row in committed.collect()}
        rows = {(row.topic, row.partition): row for row in counted.collect()}
        found = []
        for each in self._bounds:
            place = (each.topic, each.partition)
            row = rows.get(place)
            if row is None:
                found.append(PartitionCounts(each, gaps=self._gaps[place]))
                continue
            found.append(
                PartitionCounts(
                    bounds=each,
                    records=row.records,
                    aborted=row.ended - seen.get(place, 0),
                    open=row.records - row.ended,
                    bytes=row.bytes,
                    median=row.percentiles[0],
                    p99=row.percentiles[1],
                    largest=row.largest,
                    null_keys=row.null_keys,
                    null_values=row.null_values,
                    untimed=row.untimed,
                    first_time=row.first_time,
                    last_time=row.last_time,
                    gaps=self._gaps[place],
                )
            )
        return found

    def _slots(self, topic: str, width: int) -> dict[int, dict[int, int]]:
        slot = (f.col("time") - f.col("time") % width).alias("slot")
        rows = self._records.where((f.col("topic") == topic) & f.col("time").isNotNull())
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for row in rows.groupBy(slot, "partition").count().collect():
            found[row.slot][row.partition] = row["count"]
        return dict(sorted(found.items()))

    def _sizes(self) -> Mapping[str, dict[int, int]]:
        power = f.when(f.col("size") == 0, -1).otherwise(f.length(f.bin("size")) - 1).alias("power")
        found: dict[str, dict[int, int]] = defaultdict(dict)
        for row in self._records.groupBy("topic", power).count().orderBy("topic", "power").collect():
            found[row.topic][row.power] = row["count"]
        return found

    def _duplicates(self) -> Mapping[str, Duplicates]:
        place = f.struct("partition", "offset")
        records = self._committed
        repeated = (
            records.where("id is not null")
            .groupBy("topic", "id")
            .agg(
                f.count("*").alias("times"),
                f.min("preview").alias("text"),
                f.min(place).alias("first"),
                f.max(place).alias("last"),
            )
            .where("times > 1")
            .persist(StorageLevel.MEMORY_AND_DISK)
        )
        across = f.col("first.partition") != f.col("last.partition")
        totals = repeated.groupBy("topic").agg(
            f.count("*").alias("ids"), f.sum(f.col("times") - 1).alias("surplus"), f.count_if(across).alias("across")
        )
        rank = f.row_number().over(Window.partitionBy("topic").orderBy(f.desc("times"), "first"))
        named = repeated.withColumn("rank", rank).where(f.col("rank") <= MOST_REPEATED).orderBy("topic", "rank")
        most: dict[str, list[Repeated]] = defaultdict(list)
        for row in named.collect():
            most[row.topic].append(Repeated(row.text or "", row.times, tuple(row["first"]), tuple(row["last"])))
        counted = {row.topic: row for row in totals.collect()}
        repeated.unpersist()
        nameless = records.where("id is null").groupBy("topic").count()
        unknown = {row.topic: row["count"] for row in nameless.collect()}
        found: defaultdict[str, Duplicates] = defaultdict(Duplicates)
        for topic in counted.keys() | unknown.keys():
            row = counted.get(topic)
            sums = (row.ids, row.surplus, row.across) if row else (0, 0, 0)
            found[topic] = Duplicates(*sums, unknown.get(topic, 0), tuple(most[topic]))
        return found


def _columns(identity: str | None) -> list[Column | str]:
    """Of a record, what is counted: of keys and values the sizes, and of its identity a hash."""
    nothing = f.array().cast("array<struct<key:string,value:binary>>")
    size = f.coalesce(f.octet_length("key"), f.lit(0)) + f.coalesce(f.octet_length("value"), f.lit(0))
    time = f.unix_millis("timestamp")
    told = f.expr(identity).cast("string") if identity is not None else f.col("key").cast("string")
    return [
        *PLACE,
        "offset",
        (size + f.aggregate(f.coalesce("headers", nothing), f.lit(0), _with_header)).alias("size"),
        f.col("key").isNull().alias("null_key"),
        f.col("value").isNull().alias("null_value"),
        f.when(time.between(0, LATEST - 1), time).alias("time"),
        f.unhex(f.sha2(_of_key_and_value() if identity is None else told.cast("binary"), 256)).alias("id"),
        f.substring(told, 1, PREVIEW).alias("preview"),
    ]


def _with_header(total: Column, header: Column) -> Column:
    return total + f.octet_length(header.key) + f.coalesce(f.octet_length(header.value), f.lit(0))


def _of_key_and_value() -> Column:
    """Bytes that two records share only where they have the same key and the same value, missing ones included."""
    lengths = [f.coalesce(f.octet_length(name), f.lit(-1)).cast("string") for name in ("key", "value")]
    parts = [f.coalesce(f.col(name), f.lit(b"")) for name in ("key", "value")]
    return f.concat(f.concat_ws(" ", *lengths, f.lit("")).cast("binary"), *parts)


def _width(parts: Sequence[PartitionCounts]) -> int:
    """The narrowest slot of which a plot takes all."""
    times = [each for part in parts for each in (part.first_time, part.last_time) if each is not None]
    span = max(times) - min(times) if times else 0
    return next((width for width in WIDTHS if span / width <= MOST_SLOTS), max(WIDTHS[-1], span // MOST_SLOTS + 1))
