"""Spark beside a broker: a topic read as a table and as a stream, a table written, and how long a record is under way
through a stream. One Spark serves both brokers, as a user's cluster would, and each step runs once before it counts.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.loads import Produce, create_topic
from benchmarks.process import cpu_seconds, peak_mb
from benchmarks.quantile import quantile
from benchmarks.steps import Figures, StartBroker, Step, cost, started
from benchmarks.watcher import RECORD_SIZE, arriving, producing
from jvm import maven
from jvm.spark import INSTALLED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Measure = Callable[[Any, Path], Figures]
"""Measures a broker that runs; what Spark keeps goes to the folder."""

READ = 5_000_000
WRITTEN = 1_000_000
SIZE = 100
PARTITIONS = 6
RATE = 5_000
LATENCY_S = 30.0
_SETTLE_S = 10.0
"""After the start of a stream, before its latency counts."""
SOURCE, TARGET = "spark-source", "spark-target"


class SparkSteps:
    """What is measured with one Spark, which starts when it is first needed."""

    def __init__(self, scale: float) -> None:
        self._read, self._written = int(READ * scale), int(WRITTEN * scale)
        self._latency_s = LATENCY_S * min(1.0, scale)
        self._scratch = Path(tempfile.mkdtemp(prefix="kwire-benchmarks-"))
        self._session: SparkSession | None = None
        self._warm: set[str] = set()

    def steps(self) -> list[Step]:
        return [
            self._step(f"Spark: {name}", measure)
            for name, measure in (
                ("batch read", self._batch_read),
                ("availableNow", self._available_now),
                ("sink", self._sink),
                (f"stream at {RATE:,} records/s", self._stream),
            )
        ]

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()
        shutil.rmtree(self._scratch)

    def _step(self, name: str, measure: Measure) -> Step:
        def measured(make: StartBroker) -> Figures:
            if name not in self._warm:
                self._on_broker(make, measure)
                self._warm.add(name)
            return self._on_broker(make, measure)

        return Step(name, measured)

    def _on_broker(self, make: StartBroker, measure: Measure) -> Figures:
        with started(make) as broker, tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            return measure(broker, Path(folder))

    @property
    def _spark(self) -> SparkSession:
        if self._session is None:
            from pyspark.sql import SparkSession

            settings = INSTALLED.settings(self._scratch) | {
                # As users run it: the tests compile no further than they need to.
                "spark.driver.extraJavaOptions": maven.scratch_option(self._scratch),
                "spark.sql.streaming.numRecentProgressUpdates": "100000",
            }
            self._session = SparkSession.builder.config(map=settings).getOrCreate()
            self._session.sparkContext.setLogLevel("FATAL")  # stopping a stream is told as an error
        return self._session

    def _batch_read(self, broker: Any, folder: Path) -> Figures:
        self._fill(broker)
        rows = self._spark.read.format("kafka").options(**_of(broker), subscribe=SOURCE).load()
        return _timed(broker, self._read, lambda: rows.write.format("noop").mode("overwrite").save())

    def _available_now(self, broker: Any, folder: Path) -> Figures:
        self._fill(broker)
        rows = self._source(broker)
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(folder)).trigger(availableNow=True)
        return _timed(broker, self._read, lambda: writer.start().awaitTermination())

    def _sink(self, broker: Any, folder: Path) -> Figures:
        create_topic(broker.bootstrap, TARGET, PARTITIONS)
        rows = self._spark.range(self._written).selectExpr("string(id) AS key", f"repeat('x', {SIZE}) AS value")
        writer = rows.write.format("kafka").options(**_of(broker), topic=TARGET)
        return _timed(broker, self._written, writer.save)

    def _stream(self, broker: Any, folder: Path) -> Figures:
        for topic in (SOURCE, TARGET):
            create_topic(broker.bootstrap, topic, PARTITIONS)
        writer = self._source(broker).select("value").writeStream.format("kafka").options(**_of(broker), topic=TARGET)
        with producing(broker.bootstrap, SOURCE, RATE, linger_ms=5):
            query = writer.option("checkpointLocation", str(folder)).start()
            time.sleep(_SETTLE_S)
            passed, began, before = len(query.recentProgress), time.monotonic(), cpu_seconds(broker.pid)
            with arriving(broker.bootstrap, TARGET) as ages:
                time.sleep(self._latency_s)
            cpu, lasted = cpu_seconds(broker.pid) - before, time.monotonic() - began
            durations = sorted(each.batchDuration for each in query.recentProgress[passed:])
        # Stopped amid a batch, its tasks would go on asking a broker that is gone, and keep the next stream waiting.
        query.processAllAvailable()
        query.stop()
        return {
            "ms a batch, median": quantile(durations, 0.5),
            "ms a batch, p99": quantile(durations, 0.99),
            "ms from producer to consumer, median": ages.p50,
            "ms from producer to consumer, p99": ages.p99,
            "CPU s per s": cpu / lasted,
            **cost(cpu, ages.count, RECORD_SIZE),
            "MB at most": peak_mb(broker.pid),
        }

    def _fill(self, broker: Any) -> None:
        create_topic(broker.bootstrap, SOURCE, PARTITIONS)
        Produce(self._read, SIZE, PARTITIONS, "1", batch_size=65536).run(broker.bootstrap, SOURCE)

    def _source(self, broker: Any) -> DataFrame:
        reader = self._spark.readStream.format("kafka").options(**_of(broker), subscribe=SOURCE)
        return reader.option("startingOffsets", "earliest").load()


def _of(broker: Any) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap}


def _timed(broker: Any, records: int, work: Callable[[], None]) -> Figures:
    before, began = cpu_seconds(broker.pid), time.monotonic()
    work()
    seconds, cpu = time.monotonic() - began, cpu_seconds(broker.pid) - before
    return {
        "records/s": records / seconds,
        **cost(cpu, records, SIZE),
        "MB at most": peak_mb(broker.pid),
    }
