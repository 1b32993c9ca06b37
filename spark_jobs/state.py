"""Keeps a state for each key of a stream, with a time-out: what a key has come to, and when nothing came of it.

    python -m spark_jobs.state flights plane-totals planes-on-the-ground --by tailnum --add dep_delay \\
        --schema "tailnum STRING, time_hour TIMESTAMP, dep_delay DOUBLE" --time time_hour \\
        --idle "7 days" --watermark "2 days" --checkpoint ./planes

Two topics are written, both keyed as the state is (--by), and created where they are missing, the first one compacted:
- totals: {"key", "count", "total", "first", "last"}, for each key that a batch had records of: how many there were, the
  sum of --add, the earliest and the latest time. The last value of a key is how it stands.
- silences: {"key", "since", "until"}, whenever a key had a record at `since` and none after it for as long as --idle.
  It is written once the watermark has reached `until`, so that no record can come any more that would deny it. The
  watermark lies --watermark behind the latest record of any key: it stands still while nothing comes at all.

Values are JSON, taken apart by --schema. Expressions are SQL over its fields and over `record`, a struct of the
record's own key, value, headers, topic, partition, offset and timestamp. Records come in any order within --watermark;
those that come later may be left out, and those without a key or a time are. What is told in the end does not depend
on how the records fell into batches. A key's state stays for good: its totals and, for a while, the times of its
records that are not yet behind the watermark.

At least once: state and timers are in the checkpoint, by way of RocksDB. A batch that was under way at a crash comes
again, with the state from before it and the same records: the totals are right, and a silence may come twice (key and
since tell). Another --by, --idle or --schema needs a checkpoint of its own.

To keep another state, change `Ledger`: what it keeps, what records do to it, what its timers say. It runs on
`transformWithState` where Spark has that in Python (4.1 and later), else on `transformWithStateInPandas` (4.0).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click
import pandas as pd
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, GroupedData, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle, StreamingQuery

from spark_jobs.command_line import Run, checkpoint, follow, job, reads
from spark_jobs.durations import Duration, milliseconds, words
from spark_jobs.events import events, json_of, malformed
from spark_jobs.faults import Fault, explained
from spark_jobs.topics import Reading

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATE = "count BIGINT, total DOUBLE, first BIGINT, last BIGINT, open STRING"
"""Times in ms. Those of `open` are in a text, since Spark 4.0 does not give back an array."""
OUTPUT = "key STRING, silent BOOLEAN, count BIGINT, total DOUBLE, start BIGINT, end BIGINT"
"""A total, from the first record to the last, or a silence; times in ms."""
_NO_PYTHON = "terminated with exception: Python worker failed to connect back"
_STARTS = 5


@job("state", __doc__)
@click.argument("source")
@click.argument("totals")
@click.argument("silences")
@click.option("--by", required=True, metavar="SQL", help="The key.")
@click.option("--add", default="0", metavar="SQL", help="What is summed up; null is 0.")
@click.option("--where", metavar="SQL", help="Only records for which this is true.")
@click.option("--schema", required=True, metavar="DDL", help="Of the source's values: 'id INT, name STRING'.")
@click.option("--time", required=True, metavar="SQL", help="The time of a record.")
@click.option("--idle", type=Duration(), required=True, help="How long nothing comes of a key before that is told.")
@click.option("--watermark", type=Duration(), required=True, help="How far a record may lie behind the latest.")
@malformed
@reads
@checkpoint
@follow
def main(
    run: Run,
    source: str,
    totals: str,
    silences: str,
    by: str,
    add: str,
    where: str | None,
    schema: str,
    time: str,
    idle: timedelta,
    watermark: timedelta,
    malformed: str,
    reading: Reading,
    checkpoint: Path,
    follow: bool,
) -> None:
    if len({source, totals, silences}) < 3:
        raise Fault("the source, the topic of totals and that of silences must be three topics")
    spark = run.spark.newSession()  # whose settings are its own
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    partitions = run.cluster.demand(spark, source)[source]
    given = events(run.cluster.stream(spark, source, reading), schema, malformed)
    if where is not None:
        given = given.where(where)
    records = told(ledger(entries(given, by, add, time, watermark), idle), totals, silences)
    run.cluster.provide(spark, totals, partitions, {"cleanup.policy": "compact"})
    run.cluster.provide(spark, silences, partitions, {})
    writer = run.cluster.sink(records).outputMode("update")
    meaning = {"totals": totals, "silences": silences, "--by": by, "--idle": idle, "--schema": schema}
    _complete(lambda: run.start(writer, checkpoint, follow=follow, topics=[source], **meaning), run.name)


def _complete(start: Callable[[], StreamingQuery], name: str) -> None:
    """Runs a query to its end, and anew from its checkpoint where Spark gave up on the Python of its first batch.

    Spark asks a Python process, once in a query's life, which states there are. It has ten seconds to connect, which no
    setting changes and which may be too few on a busy machine; and Spark takes nobody else when a stranger connects.
    """
    for left in reversed(range(_STARTS)):
        try:
            start().awaitTermination()
            return
        except StreamingQueryException as error:
            if not left or _NO_PYTHON not in str(error):
                raise
            print(f"{name}: {explained(error) or error}; once more", file=sys.stderr)


def entries(given: DataFrame, by: str, add: str, time: str, watermark: timedelta) -> DataFrame:
    """What a Ledger takes: by key, a time in ms and an amount."""
    found = given.select(
        f.expr(by).cast("string").alias("key"),
        f.expr(time).cast("timestamp").alias("at"),
        f.coalesce(f.expr(add).cast("double"), f.lit(0.0)).alias("amount"),
    )
    found = found.where("key IS NOT NULL AND at IS NOT NULL").withWatermark("at", words(watermark))
    return found.withColumn("at_ms", f.unix_millis("at"))


def ledger(entries: DataFrame, idle: timedelta) -> DataFrame:
    """What ledgers say of these entries."""
    groups: Any = entries.groupBy("key")
    if hasattr(GroupedData, "transformWithState"):
        return groups.transformWithState(RowLedger(milliseconds(idle)), OUTPUT, "Update", "EventTime")
    return groups.transformWithStateInPandas(FrameLedger(milliseconds(idle)), OUTPUT, "Update", "EventTime")


def told(said: DataFrame, totals: str, silences: str) -> DataFrame:
    """What is to be written of it, and to which topic."""
    start, end = (f.timestamp_millis(column) for column in ("start", "end"))
    total = json_of(["key", "count", "total", start.alias("first"), end.alias("last")])
    silence = json_of(["key", start.alias("since"), end.alias("until")])
    silent = f.col("silent")
    return said.select(
        f.when(silent, silences).otherwise(totals).alias("topic"),
        "key",
        f.when(silent, silence).otherwise(total).alias("value"),
    )


class Ledger(StatefulProcessor):
    """What a key has come to, and timers for its silences. Times are in ms.

    `open` holds the times that may yet matter to a silence: those that no other follows within the idle time, each
    with a timer, and those that the watermark has not reached, which may show that an earlier one is followed.
    """

    def __init__(self, idle_ms: int) -> None:
        self._idle_ms = idle_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state: Any = handle.getValueState("ledger", STATE)

    def close(self) -> None:
        pass

    def entered(self, key: str, entries: Iterable[tuple[int, float]], watermark: int) -> dict[str, Any]:
        """Adds these times and amounts, of which there is one at least; returns the new total."""
        new = sorted(entries)
        earliest, latest = new[0][0], new[-1][0]
        count, total, first, last, text = self._state.get() or (0, 0.0, earliest, latest, "")
        count, total = count + len(new), total + sum(amount for _, amount in new)
        first, last = min(first, earliest), max(last, latest)
        known = [int(at) for at in text.split()]
        times = sorted({*known, *(at for at, _ in new)})
        before, after = self._unfollowed(known), self._unfollowed(times)
        for at in before - after:
            self._handle.deleteTimer(at + self._idle_ms)
        for at in after - before:
            self._handle.registerTimer(at + self._idle_ms)
        text = " ".join(str(at) for at in times if at in after or at > watermark)
        self._state.update((count, total, first, last, text))
        return {"key": key, "silent": False, "count": count, "total": total, "start": first, "end": last}

    def expired(self, key: str, until: int) -> dict[str, Any]:
        """The silence that a timer found."""
        since = until - self._idle_ms
        *rest, text = self._state.get()
        self._state.update((*rest, " ".join(at for at in text.split() if int(at) > since)))
        return {"key": key, "silent": True, "count": 0, "total": 0.0, "start": since, "end": until}

    def _unfollowed(self, times: list[int]) -> set[int]:
        """Those that no other follows within the idle time; `times` are in order."""
        gaps = {at for at, following in pairwise(times) if following - at > self._idle_ms}
        return gaps | set(times[-1:])


class RowLedger(Ledger):
    """For `transformWithState`."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        entries = ((row.at_ms, row.amount) for row in rows)
        yield Row(**self.entered(key[0], entries, timerValues.getCurrentWatermarkInMs()))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        yield Row(**self.expired(key[0], expiredTimerInfo.getExpiryTimeInMs()))


class FrameLedger(Ledger):
    """For `transformWithStateInPandas`."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        entries = (entry for frame in rows for entry in zip(frame.at_ms.tolist(), frame.amount.tolist(), strict=True))
        yield self._frame(self.entered(key[0], entries, timerValues.getCurrentWatermarkInMs()))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:
        yield self._frame(self.expired(key[0], expiredTimerInfo.getExpiryTimeInMs()))

    @staticmethod
    def _frame(row: dict[str, Any]) -> Any:
        return pd.DataFrame([row])


if __name__ == "__main__":
    main()
